package server

// Routes lists the operations with the scopes of which one is enough.
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

// Queries lists the operations with the parameters that they know.
func Queries() map[string][]string {
	out := map[string][]string{}
	for _, r := range (&Server{}).table() {
		out[r.pattern] = r.query
	}
	return out
}

// BodyWeight is what a text is counted as.
func BodyWeight(text []byte) int64 { return bodyWeight(int64(len(text)), valuesIn(text)) }
