"""An MCP server that requires a sign-in, and its authorization server, both of the official Python SDK: metadata, registration,
codes with PKCE and refresh tokens are checked by the SDK. Tokens live for two seconds.

usage: signin.py PORT
"""
import secrets
import sys
import time

from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthToken

URL = f"http://127.0.0.1:{sys.argv[1]}"
LIFE = 2


class Provider(OAuthAuthorizationServerProvider):
    """Everybody who opens the link agrees."""

    def __init__(self):
        self.clients, self.codes, self.access, self.refresh = {}, {}, {}, {}

    async def get_client(self, client_id):
        return self.clients.get(client_id)

    async def register_client(self, client_info):
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client, params):
        code = secrets.token_urlsafe(32)
        self.codes[code] = AuthorizationCode(
            code=code, scopes=params.scopes or [], expires_at=time.time() + 60, client_id=client.client_id,
            code_challenge=params.code_challenge, redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly, resource=params.resource,
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(self, client, authorization_code):
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client, authorization_code):
        del self.codes[authorization_code.code]
        return self.issue(client, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client, refresh_token):
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(self, client, refresh_token, scopes):
        del self.refresh[refresh_token.token]
        print("renewed", flush=True)
        return self.issue(client, scopes, refresh_token.resource)

    async def load_access_token(self, token):
        return self.access.get(token)

    async def revoke_token(self, token):
        self.access.pop(token.token, None)

    def issue(self, client, scopes, resource):
        assert resource == URL + "/mcp", resource
        access, refresh = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        until = int(time.time()) + LIFE
        self.access[access] = AccessToken(
            token=access, client_id=client.client_id, scopes=scopes, expires_at=until, resource=resource
        )
        self.refresh[refresh] = RefreshToken(token=refresh, client_id=client.client_id, scopes=scopes, resource=resource)
        return OAuthToken(
            access_token=access, token_type="Bearer", expires_in=LIFE, refresh_token=refresh, scope=" ".join(scopes)
        )


server = MCPServer(
    "notes",
    auth_server_provider=Provider(),
    auth=AuthSettings(
        issuer_url=URL, resource_server_url=URL + "/mcp", required_scopes=["notes"],
        client_registration_options=ClientRegistrationOptions(
            enabled=True, valid_scopes=["notes"], default_scopes=["notes"]
        ),
    ),
)


@server.tool()
def count() -> str:
    """Counts."""
    return "42 notes"


server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
