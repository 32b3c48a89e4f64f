package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/auth/extauth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// authorized calls a tool of a gateway that knows tokens of an issuer
// alone. Where that is, and what to ask it for, the gateway's own
// metadata says. args are the gateway's address, the client's name at
// the issuer and its secret there.
func authorized(ctx context.Context, args []string) (map[string]any, error) {
	handler, err := extauth.NewClientCredentialsHandler(&extauth.ClientCredentialsHandlerConfig{
		Credentials: &oauthex.ClientCredentials{
			ClientID:         args[1],
			ClientSecretAuth: &oauthex.ClientSecretAuth{ClientSecret: args[2]},
		},
		HTTPClient: http.DefaultClient,
	})
	if err != nil {
		return nil, err
	}
	c := mcp.NewClient(&mcp.Implementation{Name: "authorized", Version: "1"}, nil)
	s, err := c.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: args[0], OAuthHandler: handler}, nil)
	if err != nil {
		return map[string]any{"failed": fmt.Sprint(err)}, nil
	}
	defer s.Close()
	return call(ctx, s, "read_file", "/authorized", nil), nil
}
