package server

// Routes lists the operations with their scopes, of which one is sufficient.
func Routes() map[string][]string {
	out := map[string][]string{}
	for _, r := range (&Server{}).table() {
		out[r.pattern] = nil
		for _, s := range r.scopes {
			out[r.pattern] = append(out[r.pattern], string(s))
		}
	}

	return out
}

// Queries lists the operations with their query parameters.
func Queries() map[string][]string {
	out := map[string][]string{}
	for _, r := range (&Server{}).table() {
		out[r.pattern] = r.query
	}
	return out
}

// BodyWeight returns the memory that is counted for a text.
func BodyWeight(text []byte) int64 { return bodyWeight(int64(len(text)), valuesIn(text)) }
