"""A fleet of engines that compute nothing: OpenAI's interface in front, lbopt's step-time laws behind."""
