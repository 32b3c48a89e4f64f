package main

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/mcp"
	mcpconfig "github.com/assent-dev/assent/mcp/config"
	mcpserver "github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/server"
)

// servedMCP is an MCP gateway of a service. Its callers authenticate with tokens of the service for
// the gateway's agent.
type servedMCP struct {
	*mcpGateway
	cfg      mcpconfig.Served
	bearers  *server.Bearers
	endpoint *mcpserver.HTTP
	drained  <-chan struct{}
}

// addMCP adds an MCP gateway of a tenant.
func (a *app) addMCP(ctx context.Context, tenant string, cfg mcpconfig.Served) error {
	if _, err := a.tenants.Plan(ctx, tenant, cfg.Agent); err != nil {
		return noAgent(err)
	}
	s := &servedMCP{
		cfg: cfg,
		bearers: &server.Bearers{
			Tokens: a.store,
			Tenant: tenant,
			Agent:  cfg.Agent,
			Now:    time.Now,
		},
		drained: a.tools.drained,
	}
	common := a.mcpCommon(tenant, cfg.Agent, "mcp/"+tenant+"/"+cfg.Name)
	common.Log = common.Log.With("tenant", tenant)
	common.Page = pagesBelow(cfg.Works, a.base.String())
	common.Own = []string{a.base.String()}
	common.CallerOf = s.callerOf
	var err error
	own := mcpOwn{pins: a.cfg.PinsOf(cfg), grace: a.cfg.Drain}
	if s.mcpGateway, err = newMCP(cfg.Works, own, common); err != nil {
		return err
	}
	s.endpoint = s.server.HTTP(mcpserver.HTTPConfig{
		Authenticate: s.authenticate,
		AnyHost:      true, // the service looks at names
		Origins:      cfg.Origins,
	})
	a.tools.workers = append(a.tools.workers, s.run)
	a.tools.programs = append(a.tools.programs, server.Program{
		Path:   mcpPath + "/" + cfg.Name,
		Tenant: tenant,
		Agent:  cfg.Agent,
		Serve:  s.serve,
	})
	return nil
}

// callerKey is the context key of the caller of a request.
type callerKey struct{}

// serve answers a request whose token the service has checked.
func (s *servedMCP) serve(w http.ResponseWriter, r *http.Request, by approval.Asker) {
	s.endpoint.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, by)))
}

// authenticate returns the name of a caller: the id of its token, a slash, and the person for whom
// the token was made. The name of a token never contains a slash.
func (s *servedMCP) authenticate(r *http.Request) (caller string, refused *mcpserver.Refusal) {
	by, _ := r.Context().Value(callerKey{}).(approval.Asker)
	switch {
	case by.Token == "":
		return "", &mcpserver.Refusal{Status: http.StatusUnauthorized, Reason: "expected a token of this server"}
	case s.cfg.AsksUser() && by.Person == "":
		return "", &mcpserver.Refusal{
			Status: http.StatusForbidden,
			Reason: "the users of clients are asked here, and this token is nobody's: expected one that was made for a person",
		}
	}

	return by.Token + "/" + by.Person, nil
}

// callerOf returns the current state of a caller.
func (s *servedMCP) callerOf(ctx context.Context, name string) (mcp.Caller, error) {
	token, person, _ := strings.Cut(name, "/")
	by, err := s.bearers.Asker(ctx, token)
	if errors.Is(err, approval.ErrNotFound) || err == nil && by.Person != person {
		return mcp.Caller{}, mcp.ErrNoCaller
	}
	if err != nil {
		return mcp.Caller{}, err
	}
	c := mcp.Caller{
		Token:   by.Token,
		Person:  by.Person,
		Hold:    s.cfg.Hold,
		InPlace: s.cfg.InPlace,
	}
	if s.cfg.AsksUser() {
		c.Principal = by.Person
	}
	return c, nil
}

// run runs until ctx ends, and ends the requests of clients then.
func (s *servedMCP) run(ctx context.Context) error {
	s.log.Info("the MCP gateway serves by HTTP", "path", mcpPath+"/"+s.cfg.Name)
	return s.while(ctx, func(ctx context.Context) error {
		<-ctx.Done()
		s.endpoint.Close()
		<-s.drained
		return ctx.Err()
	})
}
