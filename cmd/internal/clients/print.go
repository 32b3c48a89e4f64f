package clients

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/mcp/config"
)

// started describes what a gateway would start or call for one server.
type started struct {
	Alias string   `json:"alias"`
	Argv  []string `json:"argv,omitempty"`
	Cwd   string   `json:"cwd,omitempty"`
	// Env are names, never values: NAME, or NAME=OTHER for one that takes the value of the
	// gateway's variable OTHER.
	Env     []string `json:"env,omitempty"`
	EnvFile string   `json:"env_file,omitempty"`
	URL     string   `json:"url,omitempty"`
	Token   string   `json:"token,omitempty"`   // file, or $NAME
	Headers []string `json:"headers,omitempty"` // NAME: file, or NAME: $NAME
}

// startedOf returns what one server of a configuration would start on this machine.
func startedOf(u config.Upstream, getenv func(string) string) (started, error) {
	out := started{Alias: u.Alias, Cwd: u.Cwd, EnvFile: u.EnvFile, Token: u.TokenFile}
	if u.TokenEnv != "" {
		out.Token = "$" + u.TokenEnv
	}
	for _, name := range slices.Sorted(maps.Keys(u.HeaderFiles)) {
		out.Headers = append(out.Headers, name+": "+u.HeaderFiles[name])
	}
	for _, name := range slices.Sorted(maps.Keys(u.HeaderEnv)) {
		out.Headers = append(out.Headers, name+": $"+u.HeaderEnv[name])
	}
	if u.URL != "" {
		out.URL = withoutQueries(u.URL)
		return out, nil
	}
	out.Argv = append([]string{u.Command}, u.Args...)
	env, err := variables(u, getenv)
	out.Env = env

	return out, err
}

// variables returns the names of all variables that a program would get.
func variables(u config.Upstream, getenv func(string) string) ([]string, error) {
	shown := map[string]string{}
	for _, name := range config.Passed() {
		if getenv(name) != "" {
			shown[name] = name
		}
	}
	for name := range u.Env {
		shown[name] = name
	}
	if u.EnvFile != "" {
		secret, err := config.ReadEnv(u.EnvFile)
		if err != nil {
			return nil, err
		}
		for name := range secret {
			shown[name] = name
		}
	}

	dotenv, err := config.ReadDotenv(u.DotenvFile)
	if err != nil {
		return nil, err
	}
	for name := range dotenv {
		shown[name] = name
	}

	for name, from := range u.EnvFrom {
		shown[name] = name + "=$" + from
	}

	return slices.Sorted(maps.Values(shown)), nil
}

// argv quotes arguments as Go strings, so that people see where each begins and ends. No shell
// interprets them.
func argv(args []string) string {
	var out []string
	for _, a := range args {
		out = append(out, strconv.QuoteToASCII(a))
	}

	return strings.Join(out, " ")
}
