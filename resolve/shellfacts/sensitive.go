package shellfacts

import (
	"path"
	"slices"
	"strings"
)

// These are the names of files and directories that contain secrets, or settings that decide which
// programs run, as patterns of path.Match in lower case.
var (
	sensitiveNames = []string{
		// directories
		".git", ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".gcloud", ".claude", ".codex", ".gemini",
		".cursor", ".copilot", ".password-store",
		// files
		".env", ".env.*", "*.env", ".envrc", ".netrc", "_netrc", ".npmrc", ".pypirc", ".git-credentials", ".pgpass",
		".my.cnf", ".htpasswd", ".vault-token", ".dockercfg", ".dockerconfigjson", ".s3cfg", ".boto", ".mcp.json",
		"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore",
		"*.kdbx", "*.ppk", "*.keytab", "credentials", "credentials.*", "*_credentials.*", "*-credentials.*", "secret",
		"secret.*", "secrets", "secrets.*", "*.secret", "*.secrets", "token", "token.*", "*.token", "*_token",
		"auth.json",
		"service-account*.json", "service_account*.json", "kubeconfig*", "*.tfstate", "*.tfstate.*", "password*.txt",
		".*_history",
	}
	// These make programs run, so they are sensitive if they are written.
	writtenNames = []string{
		".github", ".gitlab-ci.yml", ".circleci", ".husky", ".vscode", ".idea", ".gitmodules", ".gitattributes",
		".gitconfig", ".bashrc", ".bash_profile", ".profile", ".zshrc", ".zshenv", ".zprofile", "authorized_keys",
		".pre-commit-config.yaml", ".devcontainer", ".direnv", "*.agf.yaml", "*.policy.yaml", "decisions.yaml",
		"people.yaml", "hook.db*", "jenkinsfile", ".yarnrc", ".yarnrc.yml", ".pnp.*", ".continue", ".windsurf",
		"claude.md", "agents.md", "gemini.md", ".cursorrules",
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

	return slices.ContainsFunc(sensitiveSamples, func(sample string) bool {
		switch {
		case sample[0] == '.' && (component[0] == '*' || component[0] == '?'):
			return false // a shell matches a leading dot by a dot alone
		case component[0] == '*' && len(component) > 1 && slices.Contains(
			[]string{".json", ".yaml", ".yml", ".txt"}, path.Ext(component)):
			return false // every name with a common ending
		}
		return matches(component, sample)
	})
}

// matches is path.Match, except that an invalid pattern matches.
func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok || err != nil
}
