package upstream

// Writing reports whether a message is being written to the process of the
// server.
func (s *Server) Writing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	c, _ := s.conn.(*conn)
	return c != nil && len(c.turn) == 1
}
