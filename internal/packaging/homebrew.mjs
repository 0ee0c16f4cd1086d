// Prints the Homebrew formula of a release. Usage: node internal/packaging/homebrew.mjs DIST
import { readFileSync } from "node:fs";
import { join } from "node:path";

const dist = process.argv[2];
const { version, tag } = JSON.parse(readFileSync(join(dist, "metadata.json"), "utf8"));
const sums = new Map(
  readFileSync(join(dist, "checksums.txt"), "utf8").trim().split("\n").map((line) => line.split(/\s+/).reverse()),
);
const archive = (os, arch) => {
  const file = `mcp-toolhub_${version}_${os}_${arch}.tar.gz`;
  if (!sums.has(file)) return `      odie "this release has no archive for ${os} on ${arch}"`;
  return `      url "https://github.com/mcp-toolhub/mcp-toolhub/releases/download/${tag}/${file}"
      sha256 "${sums.get(file)}"`;
};
const on = (block, os) => `  on_${block} do
    on_intel do
${archive(os, "amd64")}
    end
    on_arm do
${archive(os, "arm64")}
    end
  end`;

console.log(`class McpToolhub < Formula
  desc "One MCP endpoint in front of many MCP servers"
  homepage "https://github.com/mcp-toolhub/mcp-toolhub"
  version "${version}"
  license "Apache-2.0"

${on("macos", "darwin")}
${on("linux", "linux")}

  def install
    bin.install "mcp-toolhub"
    man1.install Dir["man/*.1.gz"]
    bash_completion.install "completions/mcp-toolhub.bash" => "mcp-toolhub"
    zsh_completion.install "completions/mcp-toolhub.zsh" => "_mcp-toolhub"
    fish_completion.install "completions/mcp-toolhub.fish"
    doc.install "THIRD_PARTY_NOTICES", "CHANGELOG.md"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/mcp-toolhub version")
  end
end`);
