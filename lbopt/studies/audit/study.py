"""The audit as one of the studies."""

from __future__ import annotations

from lbopt.studies.audit.config import AuditConfig
from lbopt.studies.audit.run import run_audit
from lbopt.studies.study import Study

HELP = """Read a router's log and say whether another rule would serve the same requests faster.

The log has one row a request: id, arrival, start of decoding, finish, prompt tokens, output tokens, worker. Columns are
recognised by their names and contents, and shown. The step-time law is fitted to the log's own times; each rule then
runs over the same requests with that law. With --out, writes report.html, audit.json, rules.csv, rules.png, rules.svg
and run.json; none of them shows a request's id.

Example: `lbopt audit examples/logs/fleet.csv --price 2.5 --gpus 8 --out my-audit`
"""

STUDY = Study(name="audit", config=AuditConfig, help=HELP, run=run_audit, account=("interrupted", "notes"))
