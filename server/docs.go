package server

import (
	"github.com/assent-dev/assent/server/apidocs"
)

// openAPI serves the contract as JSON.
func (x *exchange) openAPI() error {
	d, err := x.contract()
	if err != nil {
		return err
	}
	d.JSON.ServeHTTP(x.w, x.r)

	return nil
}

// docs serves the contract as a page.
func (x *exchange) docs() error {
	d, err := x.contract()
	if err != nil {
		return err
	}
	d.Page.ServeHTTP(x.w, x.r)

	return nil
}

// contract is made once, by whoever asks first.
func (s *Server) contract() (*apidocs.Docs, error) { return s.apidocs() }
