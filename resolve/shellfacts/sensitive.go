package shellfacts

import (
	"path"
	"slices"
	"strings"
	"unicode"
)

// These are the names of files and directories that contain secrets, or settings that decide which
// programs run, as patterns of path.Match in lower case.
var (
	sensitiveNames = []string{
		// directories
		".git", ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".gcloud", ".claude", ".codex", ".gemini",
		".cursor", ".copilot", ".password-store", ".secrets", ".secrets.*", ".terraform.d", ".m2",
		// files
		".env", ".env.*", "*.env", ".envrc", ".netrc", "_netrc", ".npmrc", ".pypirc", ".git-credentials", ".pgpass",
		".my.cnf", ".htpasswd", ".vault-token", ".dockercfg", ".dockerconfigjson", ".s3cfg", ".boto", ".mcp.json",
		"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore",
		"*.kdbx", "*.ppk", "*.keytab", "credentials", "credentials.*", "*_credentials.*", "*-credentials.*", "secret",
		"secret.*", "secrets", "secrets.*", "*.secret", "*.secrets", "token", "token.*", "*.token", "*_token",
		"auth.json",
		".env~", ".env-*", ".env_*", ".flaskenv", ".dev.vars", "*.tfvars", "*.tfvars.*", "id_rsa*", "id_ed25519*",
		"*_rsa",
		"*.p8", "*.asc", "*.gpg", "client_secret*", "*-key.json", "*_key.json", "*firebase-adminsdk*", "oauth_token*",
		"*.token.*", "secrets-*", "secrets_*", ".tokens", "secret_*", "secret-*", "passwords.*", "htpasswd",
		"hosts.yml",
		"pip.conf", "gradle.properties", ".terraformrc", ".rhistory",
		"service-account*.json", "service_account*.json", "kubeconfig*", "*.tfstate", "*.tfstate.*", "password*.txt",
		".*_history",
	}
	// These make programs run, so they are sensitive if they are written.
	writtenNames = []string{
		".github", ".gitlab-ci.yml", ".circleci", ".husky", ".vscode", ".idea", ".gitmodules", ".gitattributes",
		".gitconfig", ".bashrc", ".bash_profile", ".profile", ".zshrc", ".zshenv", ".zprofile", "authorized_keys",
		".pre-commit-config.yaml", ".devcontainer", ".direnv", "*.agf.yaml", "*.policy.yaml", "decisions.yaml",
		"people.yaml", "hook.db*", "jenkinsfile", ".yarnrc", ".yarnrc.yml", ".pnp.*", ".continue", ".windsurf",
		"claude.md", "agents.md", "gemini.md", ".cursorrules", ".githooks", "lefthook.yml", "lefthook.yaml", ".cargo",
		"claude.local.md", "agents.override.md", ".agents", "opencode.json*", ".opencode", ".zed", ".clinerules",
		".roo",
		".kiro", ".amazonq", ".aider.conf.yml", ".mise.toml", ".tool-versions", ".pnpmfile.cjs", "bunfig.toml",
		".config",
		".bazelrc", ".vimrc", ".exrc", ".nvimrc", ".inputrc", ".claudeignore", ".geminiignore", ".cursorignore",
		"decisions.yml", "people.yml", "*.agf.yml", "*.policy.yml", "git~1",
	}
	// Templates are named like secrets but contain none.
	templateEnds = []string{".example", ".sample", ".template", ".dist", ".defaults", ".go", ".py", ".js", ".ts",
		".tsx",
		".jsx", ".rs", ".java", ".rb", ".md", ".pub"}
	// sensitiveSamples are names that the patterns above match. A shell pattern that matches one of
	// them may name a secret.
	sensitiveSamples = []string{
		".env", ".env.local", ".env.production", ".env.development", ".envrc", ".netrc", ".npmrc", ".pypirc",
		".git-credentials", ".git", ".ssh", ".aws", ".claude", ".codex", ".gemini", ".cursor", ".copilot", "id_rsa",
		"id_ed25519", "id_ecdsa", "server.pem", "server.key", "credentials", "credentials.json", "secret", "secrets",
		"secrets.json", "secrets.yaml", "secrets.yml", "token", "token.txt", "auth.json", "service-account.json",
		"terraform.tfstate", "prod.env", "key.pem", "private.key", ".mcp.json",
	}
)

// Sensitive reports whether a path may name a file with secrets or settings. If it is written, a
// file that decides which programs run counts too.
func Sensitive(name string, written bool) bool {
	components := strings.FieldsFunc(strings.ToLower(name),
		func(c rune) bool { return c == '/' || c == ':' || c == '\\' })
	for i, c := range components {
		c = strings.TrimRightFunc(c, func(r rune) bool { return r == '.' || !unicode.IsPrint(r) || r == ' ' })
		if c == "" {
			continue // "." and ".."
		}
		if i < len(components)-1 && (c[0] == '*' || c[0] == '?') {
			continue // directories that are sensitive begin with a dot, or are named in other places
		}
		if isSensitive(c, sensitiveNames) && !hasEnd(c) || written && isSensitive(c, writtenNames) {
			return true
		}
	}

	return false
}

func hasEnd(component string) bool {
	return slices.ContainsFunc(templateEnds, func(end string) bool { return strings.HasSuffix(component, end) })
}

// isSensitive matches a component of a path, which may be a pattern.
func isSensitive(component string, names []string) bool {
	if !strings.ContainsAny(component, "*?[") {
		return slices.ContainsFunc(names, func(n string) bool { return matches(n, component) })
	}
	hidden := strings.IndexByte("*?[", component[0]) < 0 // a shell matches a leading dot only by a dot
	plain := strings.ContainsAny(component, "?[")        // few people write these, except to hide a name
	if component[0] != '*' || plain {
		if slices.ContainsFunc(names, func(n string) bool {
			return (hidden || n[0] != '.') && (plain || n[0] != '*' || sharesEnding(component, n)) &&
				mayMeet(component, n)
		}) {
			return true
		}
	}

	return slices.ContainsFunc(sensitiveSamples, func(sample string) bool {
		switch {
		case sample[0] == '.' && !hidden:
			return false
		case component[0] == '*' && len(component) > 1 && slices.Contains(
			[]string{".json", ".yaml", ".yml", ".txt"}, path.Ext(component)):
			return false // every name with a common ending
		}
		return mayMeet(component, sample)
	})
}

// sharesEnding reports whether the text before the first star of a pattern ends like the beginning of an
// ending such as *.agf.yaml: a.agf.y* does, and a* does not, which may have any ending.
func sharesEnding(pattern, ending string) bool {
	text := pattern[:strings.IndexByte(pattern, '*')]
	for i := range text {
		if rest := text[i:]; len(rest) > 1 && strings.HasPrefix(ending[1:], rest) {
			return true
		}
	}

	return false
}

// mayMeet reports whether two patterns may match the same name. A bracket expression counts as any
// character, because shells differ in what it means.
func mayMeet(a, b string) bool {
	a, b = withoutBrackets(a), withoutBrackets(b)
	// meets[j] is the answer for a[i:] and b[j:].
	meets := make([]bool, len(b)+1)
	for i := len(a); i >= 0; i-- {
		below := slices.Clone(meets) // for a[i+1:]
		for j := len(b); j >= 0; j-- {
			switch {
			case i == len(a) && j == len(b):
				meets[j] = true
			case i < len(a) && a[i] == '*':
				meets[j] = below[j] || j < len(b) && meets[j+1]
			case j < len(b) && b[j] == '*':
				meets[j] = meets[j+1] || i < len(a) && below[j]
			case i == len(a) || j == len(b):
				meets[j] = false
			default:
				meets[j] = (a[i] == '?' || b[j] == '?' || a[i] == b[j]) && below[j+1]
			}
		}
	}

	return meets[0]
}

// withoutBrackets replaces bracket expressions of a pattern by question marks.
func withoutBrackets(pattern string) string {
	var out strings.Builder
	for i := 0; i < len(pattern); i++ {
		if pattern[i] != '[' {
			out.WriteByte(pattern[i])
			continue
		}
		out.WriteByte('?')
		end := strings.IndexByte(pattern[min(i+2, len(pattern)):], ']')
		if strings.HasPrefix(pattern[i:], "[[:") {
			end = strings.Index(pattern[i+2:], "]]") + 1
		}
		if end >= 0 {
			i += 2 + end
		}
	}

	return out.String()
}

// matches is path.Match, except that an invalid pattern matches.
func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok || err != nil
}
