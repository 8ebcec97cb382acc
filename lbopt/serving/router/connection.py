"""A client's connection: what aiohttp itself answers, to requests that are no HTTP, has the form of the API, too."""

from __future__ import annotations

from aiohttp import web

from lbopt.serving.router.answers import refuse

_MOST_SHOWN = 200


class ClientConnection(web.RequestHandler):
    """aiohttp's connection, with errors as OpenAI's API tells of them.

    A client that closes its sending side counts as gone, as one that closes the connection does: a server that only
    reads cannot tell the two apart, and would keep a slot for clients that have gone.
    """

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Return the answer to a request that cannot be read, after which the connection closes.

        Parameters
        ----------
        request
            What could be read of it.
        status, exc, message
            What aiohttp found.
        """
        super().handle_error(request, status, exc, message)  # logs; raises where an answer has begun
        if status >= 500:
            answer = refuse(status, "the router failed to answer the request", "internal_error")
        else:
            answer = refuse(status, f"the request is not valid HTTP: {_first_line(message)}", "invalid_request_error")
        answer.force_close()
        return answer


def _first_line(message: str | None) -> str:
    """Return what a parser says in its first line; the others quote the request."""
    lines = (message or "").strip().splitlines()
    line = "".join(sign for sign in lines[0] if sign.isprintable()) if lines else ""
    return line.rstrip(":")[:_MOST_SHOWN] or "it cannot be read"
