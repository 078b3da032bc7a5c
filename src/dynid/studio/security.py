"""Access control: one browser of this machine that knows the token, from the studio's own page.

A page of another site may send requests to this machine, and a name of another site may resolve to it. Requests of
other sites are recognised by the headers Origin, Sec-Fetch-Site and Host, which pages cannot set. A same-site cookie,
and a custom header on every request that changes something, protect older browsers.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
from contextlib import suppress
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dynid.studio.errors import Refusal
from dynid.studio.workspace import SESSION_SECONDS

PAGE_POLICY = ("default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
               "connect-src 'self'; font-src 'self' data:; frame-src 'self'; object-src 'none'; base-uri 'none'; "
               "form-action 'self'; frame-ancestors 'none'")
REPORT_POLICY = ("sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
                 "img-src data:; frame-ancestors 'self'")
_SECURITY_HEADERS = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
                     "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin"}
_READING_METHODS = ("GET", "HEAD")
_OPEN_IT = ("open the address that `dynid studio` printed; its token works once, and Enter in that terminal prints "
            "another one")
# A page and not a redirect, because a browser sends a strict cookie only with requests from a page of the same site.
_ENTRY_PAGE = ('<!doctype html><html lang="en"><title>dynid studio</title><meta http-equiv="refresh" content="0;url=/">'
               '<p><a href="/">Open the studio</a></p></html>')


@dataclass(frozen=True)
class Authentication:
    """The address of a studio and its credentials.

    Attributes:
        host, port: address at which the studio listens.
        session: secret of the cookie.
    """

    host: str
    port: int
    session: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    _unused: set[str] = field(default_factory=set)

    def new_token(self) -> str:
        """Return a new token, which is valid once."""
        token = secrets.token_urlsafe(24)
        self._unused.add(token)
        return token

    def takes(self, token: str) -> bool:
        """Whether a token is valid; each token is valid only once."""
        found = [one for one in self._unused if hmac.compare_digest(one.encode(), token.encode())]
        self._unused.difference_update(found)
        return bool(found)

    @property
    def cookie(self) -> str:
        """Name of the cookie; it contains the port, because cookies are shared between ports."""
        return f"dynid_studio_{self.port}"

    def new_address(self) -> str:
        """Return an address to open in a browser, which is valid once."""
        name = "localhost" if self.host in ("0.0.0.0", "::") else self.host
        return f"http://{f'[{name}]' if ':' in name else name}:{self.port}/?token={self.new_token()}"

    def answers_to(self, header: str) -> bool:
        """Whether a Host header names this studio, and not another name that resolves to this machine."""
        name, _, port = header.lower().rpartition(":")
        if not name:
            name, port = header.lower(), "80"
        if port != str(self.port):
            return False
        name = name.strip("[]")
        if name in {"localhost", "127.0.0.1", "::1", self.host.lower()}:
            return True
        if self.host not in ("0.0.0.0", "::"):
            return False
        return name in {socket.gethostname().lower(), socket.getfqdn().lower()} or _numeric_address(name) is not None


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server at this address."""
    address = _numeric_address(host)
    return host.lower() == "localhost" if address is None else address.is_loopback


def _numeric_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the numeric address of a host, which no name of another site can imitate; None for a name."""
    with suppress(ValueError):
        return ipaddress.ip_address(host)
    return None


class AuthenticationMiddleware:
    """Middleware that admits only authenticated requests of the studio's own page."""

    def __init__(self, app: ASGIApp, door: Authentication) -> None:
        self.app, self.door = app, door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        answer = self._refused(scope) or self._let_in(scope)

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _SECURITY_HEADERS.items():
                    headers[name] = value
                headers.setdefault("Content-Security-Policy", PAGE_POLICY)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await (answer or self.app)(scope, receive, sent)

    def _refused(self, scope: Scope) -> Response | None:
        """Return the refusal of a request that is not from the studio's own page, or None."""
        headers, door = Headers(scope=scope), self.door
        if len(headers.getlist("host")) != 1 or not door.answers_to(headers["host"]):
            return refusal(Refusal(403, f"this request is for another studio; {_OPEN_IT}"))
        origin = headers.get("origin")
        if origin is not None and origin.lower() != f"http://{headers['host'].lower()}":
            return refusal(Refusal(403, "a page of another site may not use the studio"))
        site = headers.get("sec-fetch-site", "none")
        if site not in ("same-origin", "none") and scope["path"] != "/":
            return refusal(Refusal(403, "a page of another site may not use the studio"))
        if scope["method"] not in _READING_METHODS and headers.get("x-dynid") != "studio":
            return refusal(Refusal(403, "a request that changes something needs the header X-Dynid: studio"))
        return None

    def _let_in(self, scope: Scope) -> Response | None:
        """Check the credentials of a request: None for a valid cookie, a new cookie for a valid token, or a refusal."""
        headers, door = Headers(scope=scope), self.door
        pairs = (one.partition("=") for one in scope["query_string"].decode("latin-1").split("&"))
        query = {name: value for name, _, value in pairs}
        if scope["path"] == "/" and "token" in query:
            if not door.takes(query["token"]):
                return PlainTextResponse("This token is not valid for this studio, or was used before; "
                                         f"{_OPEN_IT}.", 403)
            answer = HTMLResponse(_ENTRY_PAGE)
            answer.set_cookie(door.cookie, door.session, max_age=SESSION_SECONDS, httponly=True, samesite="strict")
            return answer
        try:
            given = SimpleCookie("; ".join(headers.getlist("cookie"))).get(door.cookie)
        except CookieError:
            given = None
        if given is not None and hmac.compare_digest(given.value.encode(), door.session.encode()):
            return None
        if scope["path"] == "/":
            return PlainTextResponse(f"This browser is not authorised; {_OPEN_IT}.", 403)
        return refusal(Refusal(403, f"this browser is not authorised; {_OPEN_IT}"))


def refusal(problem: Refusal) -> JSONResponse:
    """Return the HTTP response to a refused request, with the reason."""
    return JSONResponse({"error": problem.to_dict()}, problem.status)
