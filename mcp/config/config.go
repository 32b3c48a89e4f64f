// Package config reads the configuration of the MCP gateway: the file of `assent mcp gateway
// --config`, and the section mcp of `assent serve`. The fields, their formats, defaults and
// meanings are defined in config.schema.json, and described for people in docs/contracts/mcp.md.
package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Gateway is one gateway.
type Gateway struct {
	Agent     string   `doc:"agent"` // file
	Policies  []string `doc:"policies"`
	People    string   `doc:"people"`
	Decisions string   `doc:"decisions"`
	// OnBrokenFiles is "keep" or "deny".
	OnBrokenFiles string `doc:"on_broken_files"`
	// Undeclared is "deny" or "ask".
	Undeclared string `doc:"undeclared"`

	Server          string `doc:"server"` // "": the gateway asks by itself
	ServerTokenFile string `doc:"server_token_file"`
	// Offline is "deny" or "allow".
	Offline string `doc:"offline"`

	Store     string `doc:"store"`
	StoreFile string `doc:"store_file"`
	Key       string `doc:"key"`       // "": assent.key next to a store that is a file
	Watermark string `doc:"watermark"` // "": next to the key; NoWatermark: none

	Works
	PermitAge time.Duration `doc:"permit_age"` // at most a day

	Listen    string        `doc:"listen"` // "": standard streams
	PublicURL string        `doc:"public_url"`
	Hosts     []string      `doc:"hosts"`
	Callers   []Caller      `doc:"callers"`
	OAuth     *OAuth        `doc:"oauth"` // nil: callers show tokens of files alone
	Grace     time.Duration `doc:"grace"`
}

// Works holds the fields that are the same for a gateway of its own and for one in `assent serve`.
type Works struct {
	// Ask is "user", "approvers" or "both". If it is empty, approvers are asked if there are any.
	Ask       string        `doc:"ask"`
	Within    time.Duration `doc:"within"`
	RunWithin time.Duration `doc:"run_within"`
	Origins   []string      `doc:"origins"`
	Upstream  []Upstream    `doc:"upstream"`
	// Prefix is "auto" or "always".
	Prefix    string `doc:"prefix"`
	NameLimit int    `doc:"name_limit"` // characters
	Resources string `doc:"resources"`  // an alias
	// Link is "off" or "url".
	Link        string        `doc:"link"`
	KeepResults time.Duration `doc:"keep_results"`
	MaxPending  int           `doc:"max_pending"`
	Recheck     time.Duration `doc:"recheck"`
	WaitTool    bool          `doc:"wait_tool"`
}

// AsksUser reports whether the users of clients are asked.
func (w *Works) AsksUser() bool { return w.Ask == "user" || w.Ask == "both" }

// Served is a gateway of `assent serve` at /mcp/NAME. It uses the server's tenant, store, key,
// rules and people, and its callers authenticate with tokens of the server.
type Served struct {
	Name  string `doc:"name"`
	Agent string `doc:"agent"` // id
	Pins  string `doc:"pins"`  // file; "": mcp-NAME.pins.json next to the store, or to the key with PostgreSQL
	Works
	Hold    time.Duration `doc:"hold"`
	InPlace bool          `doc:"in_place"`
}

// NoWatermark is the value of watermark that switches it off.
const NoWatermark = "none"

// Caller is a client that may call.
type Caller struct {
	Name            string `doc:"name"`
	Person          string `doc:"person"`
	TokenFile       string `doc:"token_file"`
	Subject         string `doc:"subject"`
	Issuer          string `doc:"issuer"` // of the subject; "": the only one
	ServerTokenFile string `doc:"server_token_file"`
	Session         string `doc:"session"`
	// Hold is the time that a call waits for an answer.
	Hold    time.Duration `doc:"hold"`
	InPlace bool          `doc:"in_place"`
}

// OAuth configures which tokens the gateway accepts.
type OAuth struct {
	Issuers  []Issuer `doc:"issuers"`
	Audience string   `doc:"audience"` // "": the gateway's own address
	Scopes   []string `doc:"scopes"`
	Claim    string   `doc:"claim"`
}

// Issuer is an authorization server. Without JWKSURL and JWKSFile, the location of its keys is read
// from its metadata.
type Issuer struct {
	Issuer     string   `doc:"issuer"`
	JWKSURL    string   `doc:"jwks_url"`
	JWKSFile   string   `doc:"jwks_file"`
	Algorithms []string `doc:"algorithms"` // none: all that can be allowed
	Networks   []string `doc:"networks"`
}

// Client configures how the gateway gets a token for a server, from TokenURL or from Issuer.
type Client struct {
	TokenURL   string   `doc:"token_url"`
	Issuer     string   `doc:"issuer"`
	ID         string   `doc:"client_id"`
	SecretFile string   `doc:"client_secret_file"`
	Scopes     []string `doc:"scopes"`
	Resource   string   `doc:"resource"` // "": the server's URL without its query
	Networks   []string `doc:"networks"`
}

// SignIn configures how a person signs in to a server.
type SignIn struct {
	ID           string   `doc:"client_id"`          // "": each sign-in registers a client
	SecretFile   string   `doc:"client_secret_file"` // "": the client has no secret
	Issuer       string   `doc:"issuer"`
	Scopes       []string `doc:"scopes"`
	RedirectPort int      `doc:"redirect_port"` // 0: any
	Networks     []string `doc:"networks"`
}

// Upstream is an MCP server: a program if it has a Command, otherwise the server at URL.
type Upstream struct {
	Alias   string            `doc:"alias"`
	Command string            `doc:"command"`
	Args    []string          `doc:"args"`
	Cwd     string            `doc:"cwd"` // "": the gateway's own
	Env     map[string]string `doc:"env"`
	EnvFile string            `doc:"env_file"` // see ReadEnv
	// EnvFrom maps names of the program's variables to names of the gateway's own variables.
	EnvFrom map[string]string `doc:"env_from"`
	// DotenvFile is read by ReadDotenv.
	DotenvFile string `doc:"dotenv_file"`
	// FillIn maps texts to names of the gateway's own variables. Filled replaces each text with the
	// variable's value.
	FillIn map[string]string `doc:"fill_in"`

	URL         string            `doc:"url"`
	Networks    []string          `doc:"networks"`
	TokenFile   string            `doc:"token_file"`
	TokenEnv    string            `doc:"token_env"`
	OAuth       *Client           `doc:"oauth"`
	SignIn      *SignIn           `doc:"sign_in"`
	HeaderFiles map[string]string `doc:"header_files"`
	HeaderEnv   map[string]string `doc:"header_env"`

	// Era is "auto", "legacy" or "modern".
	Era      string   `doc:"era"`
	PassMeta []string `doc:"pass_meta"` // keys, or "all"
	// Pins is "trust_first" or "required".
	Pins string `doc:"pins"`
	// OnChange is "hold", "ask" or "accept".
	OnChange string `doc:"on_change"`
	// OnText is "strip" or "hold".
	OnText       string   `doc:"on_text"`
	VolatileMeta []string `doc:"volatile_meta"`
	PinBinary    bool     `doc:"pin_binary"`
	IncludeTools []string `doc:"include_tools"` // none: all tools
	ExcludeTools []string `doc:"exclude_tools"`
	// Elicitation and Sampling are "relay" or "off".
	Elicitation string   `doc:"elicitation"`
	Sampling    string   `doc:"sampling"`
	Roots       []string `doc:"roots"`
	// ClientRoots is "off" or "relay".
	ClientRoots string `doc:"client_roots"`
	// Instructions is "drop" or "relay".
	Instructions string `doc:"instructions"`
}

// SignsIn reports whether a person may sign in to the server. Servers that get a token in another
// way need no sign-in.
func (u *Upstream) SignsIn() bool {
	authorized := func(name string) bool { return strings.EqualFold(name, "Authorization") }
	return u.URL != "" && u.TokenFile+u.TokenEnv == "" && u.OAuth == nil &&
		!slices.ContainsFunc(slices.Collect(maps.Keys(u.HeaderFiles)), authorized) &&
		!slices.ContainsFunc(slices.Collect(maps.Keys(u.HeaderEnv)), authorized)
}

// Passed returns the variables that every program gets from the gateway's environment if they are
// set: those that every program needs, and Network.
func Passed() []string {
	return append(strings.Fields("HOME LANG LC_ALL LOGNAME PATH SHELL TERM TMPDIR TZ USER"), Network()...)
}

// Network returns the variables that programs need in a company's network: for proxies and
// certificate authorities.
func Network() []string {
	return strings.Fields("HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy " +
		"NODE_EXTRA_CA_CERTS NODE_USE_ENV_PROXY NODE_USE_SYSTEM_CA SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE " +
		"CURL_CA_BUNDLE GIT_SSL_CAINFO PIP_CERT DENO_CERT UV_NATIVE_TLS UV_SYSTEM_CERTS npm_config_cafile " +
		"npm_config_proxy npm_config_https_proxy npm_config_registry")
}

// Filled returns the upstream in which the texts of FillIn are replaced by the values of variables.
func (u Upstream) Filled(getenv func(string) string) (Upstream, error) {
	if len(u.FillIn) == 0 {
		return u, nil
	}
	// A longer text wins over one that is a part of it.
	texts := slices.SortedFunc(maps.Keys(u.FillIn), func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	var pairs []string
	for _, text := range texts {
		value := getenv(u.FillIn[text])
		if value == "" {
			return u, fmt.Errorf("fill_in: %s: the variable %s is not set for the gateway", text, u.FillIn[text])
		}
		pairs = append(pairs, text, value)
	}
	fill := strings.NewReplacer(pairs...).Replace
	u.Command, u.Cwd, u.URL = fill(u.Command), fill(u.Cwd), fill(u.URL)
	u.Args = slices.Clone(u.Args)
	for i := range u.Args {
		u.Args[i] = fill(u.Args[i])
	}
	return u, nil
}
