package config

import (
	"regexp"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/shape"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
)

// passedNames are the variables that every program gets as the hub has them: without them it reaches
// nothing where connections go through a proxy, or are signed by a CA of a company's own.
func passedNames() []string {
	names := []string{"NODE_EXTRA_CA_CERTS", "NODE_USE_SYSTEM_CA", "SSL_CERT_FILE", "SSL_CERT_DIR",
		"REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT", "GIT_SSL_CAINFO", "AWS_CA_BUNDLE", "DENO_CERT",
		"NPM_CONFIG_CAFILE", "npm_config_cafile", "UV_NATIVE_TLS", "UV_SYSTEM_CERTS"}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"} {
		names = append(names, name, strings.ToLower(name))
	}
	return names
}

// need says which variables a kind of server uses.
type need struct {
	kind  *regexp.Regexp // matches its command line
	names []string
}

func needs() []need {
	of := func(words string, names ...string) need {
		return need{regexp.MustCompile(`(?i)(?:^|[^a-z])(?:` + words + `)(?:$|[^a-z])`), names}
	}
	return []need{
		of("playwright|puppeteer|chrome|chromium|browser|selenium|firefox",
			"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "PLAYWRIGHT_BROWSERS_PATH"),
		of("git|ssh|sftp|ansible", "SSH_AUTH_SOCK"),
		of("docker|podman|testcontainers", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG"),
		of("kubernetes|kubectl|k8s|helm", "KUBECONFIG"),
		of("aws|awslabs", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_CONFIG_FILE",
			"AWS_SHARED_CREDENTIALS_FILE"),
		of("gcloud|google-cloud|bigquery", "CLOUDSDK_CONFIG", "GOOGLE_APPLICATION_CREDENTIALS"),
		of("npx|npm|pnpm|bunx", "NPM_CONFIG_REGISTRY", "npm_config_registry", "NPM_CONFIG_USERCONFIG"),
		of("uvx|uv|pipx", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX", "PIP_INDEX_URL"),
	}
}

// Needed returns the variables of env that programs of this kind use, and get only if hub.env or
// their entry names them.
func Needed(env Env, command string, args []string) (names []string) {
	line := strings.Join(append([]string{command}, args...), " ")
	for _, n := range needs() {
		if !n.kind.MatchString(line) {
			continue
		}
		for _, name := range n.names {
			if env.value(name) != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// passOn gives c the variables that all programs get, and those of hub.env (named). entry is the env of its entry.
func (r *reader) passOn(c *upstream.ServerConfig, named []string, entry []shape.Entry[string]) {
	for _, name := range slices.Concat(passedNames(), named) {
		value, set := r.env.lookup(name)
		if set && !slices.ContainsFunc(entry, func(e shape.Entry[string]) bool { return e.Name == name }) {
			c.Passed = append(c.Passed, name+"="+value)
		}
	}
	if c.Transport != upstream.Stdio {
		return
	}
	c.Withheld = slices.DeleteFunc(Needed(r.env, c.Command, c.Args), func(name string) bool {
		return slices.Contains(named, name) ||
			slices.ContainsFunc(entry, func(e shape.Entry[string]) bool { return e.Name == name })
	})
}
