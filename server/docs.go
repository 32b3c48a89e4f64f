package server

import (
	"github.com/assent-dev/assent/server/apidocs"
)

// openAPI serves the contract as JSON.
func (x infoOps) openAPI() error {
	d, err := x.contract()
	if err != nil {
		return err
	}
	d.JSON.ServeHTTP(x.w, x.r)

	return nil
}

// docs serves the contract as an HTML page.
func (x infoOps) docs() error {
	d, err := x.contract()
	if err != nil {
		return err
	}
	d.Page.ServeHTTP(x.w, x.r)

	return nil
}

// contract returns the API documentation, which the first call makes.
func (s *Server) contract() (*apidocs.Docs, error) { return s.apidocs() }
