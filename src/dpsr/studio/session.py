"""Who may use the studio: whoever opened the link that the terminal printed, in that browser, from that page.

link        a token of 256 bits that works once; another is printed when it is asked for in the terminal
session     a cookie that scripts cannot read and other sites' pages do not send (HttpOnly, SameSite=Strict)
changes     a form must come from a page of this origin (Origin or Sec-Fetch-Site) and carry the session's own
            secret, which no other page can know
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from threading import Lock

from dpsr.web.guard import Refusal

NO_LINK = (
    "This page opens by the link that the terminal printed, once. Press Enter in the terminal where dpsr studio runs, "
    "and open the new link."
)
NOT_FROM_HERE = "A form must come from a page of this studio, and this one did not. Go back to the studio's own page."
STALE = "The page is older than this session. Load it again, look at what it shows, and then click."
_AGE = 12 * 3600


class Sessions:
    """Links that work once and the sessions they began."""

    def __init__(self, port: int) -> None:
        self.cookie = f"dpsr_studio_{port}"
        self.origins = {f"http://{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}
        self._links: set[str] = set()
        self._forms: dict[str, str] = {}
        self._lock = Lock()

    def new_link(self) -> str:
        """A token; the one before, if nobody used it, is void."""
        token = secrets.token_urlsafe(32)
        with self._lock:
            self._links = {token}
        return token

    def redeem(self, token: str) -> str:
        """The cookie of a new session, for a token that was not used yet."""
        with self._lock:
            known = [
                one for one in self._links if secrets.compare_digest(one.encode(), token.encode("utf-8", "replace"))
            ]
            if not known:
                raise Refusal(403, NO_LINK)
            self._links.clear()
            session = secrets.token_urlsafe(32)
            self._forms[session] = secrets.token_urlsafe(32)
        return f"{self.cookie}={session}; HttpOnly; SameSite=Strict; Path=/; Max-Age={_AGE}"

    def secret_of(self, cookies: Mapping[str, str], headers: Mapping[str, str]) -> str:
        """The form secret of the session a request belongs to; refused without one, or from another site's page."""
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise Refusal(403, NOT_FROM_HERE)
        secret = self._forms.get(cookies.get(self.cookie, ""))
        if secret is None:
            raise Refusal(403, NO_LINK)
        return secret

    def check_form(self, secret: str, form: Mapping[str, str], headers: Mapping[str, str]) -> None:
        """Refuse a form that another origin sent or that does not carry the secret."""
        origin = headers.get("origin")
        if origin is None and headers.get("sec-fetch-site") != "same-origin":
            raise Refusal(403, NOT_FROM_HERE)
        if origin is not None and origin not in self.origins:
            raise Refusal(403, NOT_FROM_HERE)
        if not secrets.compare_digest(form.get("form_secret", "").encode("utf-8", "replace"), secret.encode()):
            raise Refusal(403, STALE)
