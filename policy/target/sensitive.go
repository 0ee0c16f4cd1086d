package target

import (
	"cmp"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Classes of sensitive paths.
const (
	classKeys     = "keys"        // private keys and what unlocks them
	classLogin    = "credentials" // tokens and passwords of programs and clouds
	classEnv      = "environment"
	classHistory  = "history" // what a person has typed
	classBrowser  = "browser" // cookies, saved passwords
	classSystem   = "system"
	classStartup  = "startup" // runs later by itself: sensitive to write
	classOperator = "configured"
	classOwn      = "the hub goes by it" // sensitive to write
)

// defaultSensitive are names, or names below one another, that are sensitive in every directory
// with all that lies below. The home directories of other accounts, mounted homes and backups keep
// the same secrets, so none is bound to one home.
func defaultSensitive() map[string][]string {
	return map[string][]string{
		classKeys: {".ssh", ".gnupg", ".password-store", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk",
			"id_ed25519_sk",
			".local/share/keyrings", "library/keychains", ".config/keepassxc", ".config/1password", ".config/bitwarden",
			".putty",
			".age", ".config/sops", ".bitcoin", ".ethereum", ".electrum", ".solana", ".config/solana", "wallet.dat",
			"/etc/ssl/private",
			".gnome2/keyrings", ".kde/share/apps/kwallet", ".local/share/kwalletd"},
		classLogin: {".aws", ".azure", ".config/gcloud", ".oci", ".kube", ".docker/config.json",
			".config/containers/auth.json",
			".terraform.d", ".terraformrc", ".config/doctl", ".config/hcloud", ".config/rclone", ".config/heroku",
			".fly", ".s3cfg", ".boto",
			".databrickscfg", ".snowflake", ".snowsql", ".aliyun", ".bluemix", ".netrc", "_netrc", ".pgpass", ".my.cnf",
			".mylogin.cnf",
			".git-credentials", ".config/git/credentials", ".config/gh", ".config/glab-cli", ".config/hub", ".npmrc",
			".yarnrc", ".yarnrc.yml",
			".pypirc", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".m2/settings.xml",
			".m2/settings-security.xml",
			".gradle/gradle.properties", ".nuget/nuget.config", ".composer/auth.json", ".config/composer/auth.json",
			".vault-token",
			".htpasswd", ".config/op", ".config/stripe", ".config/ngrok", ".ngrok2", ".cloudflared",
			".claude/.credentials.json",
			".codex/auth.json", ".gemini/oauth_creds.json", ".config/github-copilot",
			"application_default_credentials.json",
			"credentials.json", "secrets.json", "secrets.yml", "secrets.yaml", "secrets.toml", "client_secret.json",
			"service-account.json",
			"service_account.json", "appdata/roaming/microsoft/credentials", "appdata/local/microsoft/credentials",
			"appdata/roaming/microsoft/protect", "appdata/local/microsoft/vault", "appdata/roaming/gcloud",
			"/run/secrets",
			"/var/run/secrets"},
		classEnv: {".env", ".envrc", ".flaskenv"},
		classHistory: {".bash_history", ".zsh_history", ".zhistory", ".histfile", ".sh_history", ".ksh_history",
			".history", "fish_history",
			".local/share/fish", ".python_history", ".node_repl_history", ".irb_history", ".psql_history",
			".mysql_history", ".sqlite_history",
			".rediscli_history", ".dbshell", ".mongodb/mongosh", ".lesshst", ".viminfo", ".wget-hsts",
			"consolehost_history.txt"},
		classBrowser: {".mozilla", ".config/google-chrome", ".config/chromium", ".config/bravesoftware",
			".config/microsoft-edge",
			".config/vivaldi", ".config/opera", ".thunderbird", "snap/firefox", "snap/chromium",
			".var/app/org.mozilla.firefox",
			"library/application support/google/chrome", "library/application support/firefox",
			"library/application support/bravesoftware",
			"library/application support/microsoft edge", "library/application support/arc", "library/safari",
			"library/cookies",
			"library/containers/com.apple.safari", "appdata/local/google/chrome", "appdata/local/microsoft/edge",
			"appdata/local/bravesoftware", "appdata/roaming/mozilla", "appdata/roaming/opera software", "logins.json",
			"key4.db",
			"cookies.sqlite", "login data", "cookies.binarycookies"},
		classSystem: {"/proc", "/sys", "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers",
			"/etc/sudoers.d",
			"/etc/master.passwd", "/etc/security/opasswd", "/etc/krb5.keytab", "/private/etc/master.passwd", "/dev/mem",
			"/dev/kmem",
			"/dev/sda", "/dev/nvme0n1", "/var/run/docker.sock", "/run/docker.sock", "/run/containerd",
			"/var/lib/docker", "/var/lib/kubelet",
			"windows/system32/config", "ntds.dit", "/boot"},
		classStartup: {".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".zshrc", ".zshenv",
			".zprofile", ".zlogin",
			".config/fish/config.fish", ".inputrc", ".xprofile", ".xsession", ".xinitrc", ".pam_environment",
			".config/autostart",
			".config/systemd", ".config/environment.d", "library/launchagents", "library/launchdaemons", ".git/hooks",
			".git/config",
			".gitconfig", ".config/git/config", ".vscode/tasks.json", ".vscode/settings.json", ".vscode/mcp.json",
			".cursor/mcp.json",
			".mcp.json", ".claude", ".claude.json", ".codex", ".gemini", ".husky", ".vimrc", ".config/nvim", ".emacs",
			".emacs.d", "/etc", "/usr/bin",
			"/usr/sbin", "/usr/lib", "/usr/local/bin", "/bin", "/sbin", "/lib", "/lib64", "/var/spool/cron", "/library",
			"/system", "windows/system32",
			"start menu/programs/startup", "microsoft.powershell_profile.ps1", "profile.ps1"},
	}
}

// extension returns the class of files that end so; "" for none.
func extension(name string) string {
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 {
		return ""
	}
	switch name[dot:] {
	case ".pem", ".key", ".p12", ".pfx", ".pkcs12", ".jks", ".keystore", ".bks", ".ppk", ".kdbx", ".kdb", ".keychain",
		".keychain-db", ".agekey", ".gpg-key", ".pvk", ".p8":
		return classKeys
	case ".ovpn", ".tfstate", ".tfvars", ".rdp", ".keytab", ".htpasswd", ".netrc":
		return classLogin
	}
	return ""
}

// beginning returns the class of files that begin so; "" for none.
func beginning(name string) string {
	switch {
	case strings.HasPrefix(name, ".env."):
		return classEnv
	case strings.HasPrefix(name, "ssh_host_") && !strings.HasSuffix(name, ".pub"):
		return classKeys
	case (strings.HasPrefix(name, "client_secret") || strings.HasPrefix(name, "service-account") ||
		strings.HasPrefix(name, "service_account")) && strings.HasSuffix(name, ".json"):
		return classLogin
	}
	return ""
}

// sensitive matches sensitive paths.
type sensitive struct {
	first   map[string][]sequence // by the first name of the sequence, folded
	globs   Globs                 // of the operator
	exempt  Globs                 // of the operator
	own     Globs                 // of HubPaths.Own
	secrets Globs                 // of HubPaths.Secrets
}

// sequence are names below one another.
type sequence struct {
	names  []string
	rooted bool
	class  string
}

func newSensitive(more, exempt []string) *sensitive {
	s := &sensitive{first: make(map[string][]sequence), globs: NewGlobs(more...), exempt: NewGlobs(exempt...)}
	for class, list := range defaultSensitive() {
		for _, text := range list {
			rest, rooted := strings.CutPrefix(text, "/")
			names := strings.Split(rest, "/")
			s.first[names[0]] = append(s.first[names[0]], sequence{names, rooted, class})
		}
	}
	return s
}

// Literal returns the patterns for Globs that match paths, absolute, and everything below them:
// with their links, and with the links followed, as targets are. A character that is special in
// patterns becomes "?".
func Literal(paths ...string) []string {
	quote := strings.NewReplacer("[", "?", "]", "?", "*", "?", "{", "?", "}", "?", `\`, "/")
	var globs []string
	for _, path := range paths {
		globs = append(globs, quote.Replace(filepath.ToSlash(path)))
		if real := realDir(path); real != "" && real != path {
			globs = append(globs, quote.Replace(filepath.ToSlash(real)))
		}
	}
	return globs
}

// Globs match paths, whatever spelling of a name some file system takes for the same: letter case, for instance.
type Globs []string // over whole folded paths without a leading slash

// NewGlobs returns the globs of patterns. One without a leading slash holds in every directory.
// What lies below a path that matches matches, too.
func NewGlobs(patterns ...string) Globs {
	var g Globs
	for _, pattern := range patterns {
		folded := strings.TrimRight(fold(pattern), "/")
		if rest, rooted := strings.CutPrefix(folded, "/"); rooted {
			g = append(g, rest+"/**") // "a/**" holds for "a" as well
		} else {
			g = append(g, "**/"+folded+"/**")
		}
	}
	return g
}

// Match reports whether path, absolute, is one that the globs stand for.
func (g Globs) Match(path string) bool { return len(g) > 0 && g.match(namesOf(path)) }

func (g Globs) match(names []string) bool {
	path := strings.Join(names, "/")
	return slices.ContainsFunc(g, func(glob string) bool { return doublestar.MatchUnvalidated(glob, path) })
}

// Alike reports whether some file system may take the names of two paths for the same.
func Alike(a, b string) bool { return slices.Equal(namesOf(a), namesOf(b)) }

func fold(path string) string {
	names := strings.Split(filepath.ToSlash(path), "/")
	for i, n := range names {
		names[i] = foldName(n)
	}
	return strings.Join(names, "/")
}

// class returns why a path is sensitive; "" where it is not. write says that the call may write there.
func (s *sensitive) class(path string, write bool) string {
	if path == "" {
		return ""
	}
	rooted := strings.HasPrefix(path, "/") || strings.HasPrefix(path, `\`)
	names := namesOf(path)
	if write && len(s.own) > 0 && s.own.match(names) {
		return classOwn
	}
	if len(s.exempt) > 0 && s.exempt.match(names) {
		return ""
	}
	if len(s.globs) > 0 && s.globs.match(names) {
		return classOperator
	}
	for i := range names {
		if class := s.at(names, i, rooted, write); class != "" {
			return class
		}
	}
	return ""
}

// namesOf are the names of path, folded.
func namesOf(path string) []string {
	names := strings.Split(strings.Trim(strings.ReplaceAll(path, `\`, "/"), "/"), "/")
	for i, n := range names {
		if runtime.GOOS == "windows" && i > 0 {
			n, _, _ = strings.Cut(n, ":") // the name of a stream
		}
		if names[i] = strings.TrimRight(foldName(n), ". "); names[i] == "" { // some file systems take these away
			names[i] = n
		}
	}
	return names
}

// at looks at names[i:] as the beginning of a sequence, and at names[i] by itself.
func (s *sensitive) at(names []string, i int, rooted, write bool) string {
	name := names[i]
	if strings.ContainsAny(name, "*?[{") && strings.Trim(name, "*") != "" {
		if class := s.wild(names, i, write); class != "" {
			return class
		}
	}
	for _, variant := range [2]string{name, copyOf(name)} {
		if variant == "" {
			continue
		}
		if class := cmp.Or(extension(variant), beginning(variant)); class != "" {
			return class
		}
		for _, q := range s.first[variant] {
			if q.rooted && (!rooted || i != 0) || q.class == classStartup && !write || len(names)-i < len(q.names) {
				continue
			}
			if slices.Equal(q.names[1:], names[i+1:i+len(q.names)]) {
				return q.class
			}
		}
	}
	return ""
}

// wild returns the class of a name with wildcards, if it stands for one that is sensitive.
func (s *sensitive) wild(names []string, i int, write bool) string {
	if class := extension(names[i]); class != "" {
		return class
	}
	for first, sequences := range s.first {
		if ok, err := doublestar.Match(names[i], first); err != nil || !ok {
			continue
		}
		for _, q := range sequences {
			if len(q.names) == 1 && (q.class != classStartup || write) && !q.rooted {
				return q.class
			}
		}
	}
	if ok, _ := doublestar.Match(names[i], ".env.local"); ok {
		return classEnv
	}
	return ""
}

// copyOf returns the original name of a backup or temporary copy; "" for any other name.
func copyOf(name string) string {
	for _, suffix := range []string{"~", ".bak", ".old", ".orig", ".save", ".swp", ".tmp", ".copy"} {
		if rest, ok := strings.CutSuffix(name, suffix); ok && rest != "" {
			if suffix == ".swp" {
				rest = strings.TrimPrefix(rest, ".")
			}
			return rest
		}
	}
	return ""
}
