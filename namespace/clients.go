package namespace

import (
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// clientRule names a client that does not take canonical names: it refuses or rewrites dots, or has no room for 128
// characters beside what it puts before a name. It gets short names.
type clientRule struct {
	name string // as given in clientInfo, in lower case: the whole of it, or what stands before a non-letter

	// shared says that the name is the default of an SDK or a framework: any program may be behind
	// it, and many of them hand tool names to a model's API as they are. It gets safe names.
	shared bool

	exact bool // of shared names: other programs' names begin with it, too
}

// clientRules holds the clients that are known. The first row that matches counts. Names without a source of their own
// are listed by github.com/apify/mcp-client-capabilities as what those clients send.
//
// A client that is not here names itself and is not known to refuse dots: it gets canonical names:
// the protocol allows dots and 128 characters.
func clientRules() []clientRule {
	return []clientRule{
		// Measured with Claude Code 2.1: mcp__S__T, over 128 dropped. Every character but [a-zA-Z0-9_-] was refused by
		// the model's API at first (microsoft/wassette#56) and is rewritten to an underscore now.
		{name: "claude-code"},
		// Claude Desktop and claude.ai: "FrontendRemoteMcpToolDefinition.name: String should match pattern
		// '^[a-zA-Z0-9_-]{1,64}$'", and then no tool at all (loomle/loomle#168, barryw/ImmichMCP#4).
		{name: "claude"},
		// "Tool name must only contain alphanumeric characters and underscores" (webstudio-is/webstudio#5960); server
		// and tool together stay within 60 characters (awslabs/mcp#1283).
		{name: "cursor"},
		// "Tools names may only contain [a-z0-9_-]" (microsoft/vscode#308463). The name sent is the product's long name
		// (vscode mcpServerRequestHandler.ts), so builds differ. A prefix of up to 18 characters, 64 in all.
		{name: "visual studio code"},
		{name: "visual-studio-code"},
		{name: "code - oss"},
		{name: "vscodium"},
		// "Invalid 'tools[48].name' … '^[a-zA-Z0-9_-]+$'" (openai/codex#8174); later versions rewrite. Measured with
		// 0.169: about 128, then hashed.
		{name: "codex"},
		// The model's API is the same as Codex's.
		{name: "openai-mcp"},
		{name: "chatgpt"},
		// Letters, digits and _.:- are taken; mcp_S_T is cut to 63 in the middle (google-gemini/gemini-cli#20987 and
		// measured with 0.61). The name is in its packages/core/src/tools/mcp-client.ts.
		{name: "gemini-cli"},
		// Measured with Qwen Code 0.24, which adds its name of the server: a hash in the place of dots.
		{name: "qwen-cli-mcp-client"},
		// "tool name *** violates ^[a-zA-Z0-9_-]{1,64}$" (microsoft/mcp#2966).
		{name: "antigravity"},
		// Names reach the model as mcp0_T (seen in DaxianLee/cocos-mcp-server#14), whose APIs take 64 without dots.
		{name: "windsurf"},
		// Hands names to the model's API, of which the strictest takes ^[a-zA-Z0-9_-]{1,64}$ (cline/cline#11877,
		// cline/kanban#47); the forks share the code.
		{name: "cline"},
		{name: "@cline/core"}, // measured with Cline CLI 3.0: a hash in the place of dots
		{name: "roo-code"},
		{name: "roo code"},
		{name: "kilo-code"},
		{name: "kilo code"},
		// Its name is in the source of context_server; it holds names to 64 for the models' APIs.
		{name: "zed"},
		// "CAPIError: 400 tools.134.custom.name: String should match pattern"
		// (github/copilot-cli#1879, github/ copilot-sdk#743); the JetBrains and Xcode plugins fail
		// in the same way (microsoft/copilot-intellij-feedback#1583).
		{name: "github-copilot"},
		{name: "copilot"},
		{name: "jetbrains"},
		{name: "xcode-copilot"},
		// Rewrites what its models do not take (anomalyco/opencode#3842).
		{name: "opencode"},
		// Rewrites to [a-zA-Z0-9_] (continuedev/continue#7468).
		{name: "continue"},
		// Joins extension and tool with two underscores and hands the name to the model's API (aaif-goose/goose#669).
		{name: "goose"},
		// "Invalid tool definition Tool name does not match the required pattern ^[a-zA-Z0-9_-]{1,64}$"
		// (mastergo-design/mastergo-magic-mcp#36).
		{name: "augment"},

		// Frameworks, as their packages name themselves: @ai-sdk/mcp 1.0.101 and
		// @langchain/mcp-adapters 1.1.4 on npm, langchain4j-mcp and spring-ai-mcp-client on Maven.
		// The first two were seen to send names to OpenAI and Anthropic as they are, which answer
		// 400 to a dot.
		{name: "ai-sdk-mcp-client", shared: true},
		{name: "@langchain/mcp-adapters", shared: true},
		{name: "langchain4j", shared: true},
		{name: "spring-ai-mcp-client", shared: true},
		// SDKs where the program gives no name: mcp (Python; also LangChain, Pydantic AI, CrewAI
		// and others that are built on it), io.modelcontextprotocol.sdk (Java), rmcp (Rust).
		{name: "mcp", shared: true, exact: true},
		{name: "java sdk mcp client", shared: true, exact: true},
		{name: "rmcp", shared: true, exact: true},
		// The TypeScript SDK has no default: programs keep the names of its examples and of the tutorial.
		{name: "my-client", shared: true, exact: true},
		{name: "example-client", shared: true, exact: true},
		{name: "mcp-client", shared: true, exact: true},
		{name: "mcp-client-cli", shared: true, exact: true},
	}
}

// viaRemote begins what mcp-remote adds to the name of its client.
const viaRemote = " (via mcp-remote "

// autoStyle chooses the style for a client that the profile leaves to us. It depends on the client alone, never on the
// names at hand: one long name that a server adds must not rename every other tool.
func autoStyle(rules []clientRule, client tool.Client) Style {
	name, _, _ := strings.Cut(client.Name, viaRemote)
	name = strings.TrimSpace(name)
	for _, rule := range rules {
		switch {
		case rule.exact && !strings.EqualFold(name, rule.name), !rule.exact && !client.Is(rule.name):
		case rule.shared:
			return StyleSafe
		default:
			return StyleShort
		}
	}
	return StyleCanonical
}
