// Makes the npm packages of a release: one for each system with its program, and mcp-toolhub, which depends on all of them
// optionally, so that npm installs the one that fits. Usage: node internal/packaging/npm.mjs DIST OUT
import { chmodSync, copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { execFileSync } from "node:child_process";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";

const [dist, out] = process.argv.slice(2);
const here = fileURLToPath(new URL(".", import.meta.url));
const { version } = JSON.parse(readFileSync(join(dist, "metadata.json"), "utf8"));
const binaries = JSON.parse(readFileSync(join(dist, "artifacts.json"), "utf8")).filter(
  (a) => a.type === "Binary" && a.extra.ID === "mcp-toolhub",
);

// Every system that a release has, whether or not DIST has it: npm leaves out those that it cannot install.
const systems = ["linux", "darwin", "windows"].flatMap((os) => ["amd64", "arm64"].map((arch) => ({ os, arch })));
const npmOS = (os) => (os === "windows" ? "win32" : os);
const npmArch = (arch) => (arch === "amd64" ? "x64" : arch);
const nameFor = ({ os, arch }) => `@mcp-toolhub/${npmOS(os)}-${npmArch(arch)}`;
const common = {
  version,
  license: "Apache-2.0",
  homepage: "https://github.com/mcp-toolhub/mcp-toolhub",
  publishConfig: { access: "public" },
  repository: { type: "git", url: "git+https://github.com/mcp-toolhub/mcp-toolhub.git" },
};

// pack writes a package of the files, given as [from, to, mode], and packs it.
function pack(manifest, files) {
  const dir = join(out, basename(manifest.name));
  for (const [from, to, mode] of [...files, [join(here, "..", "..", "LICENSE"), "LICENSE", 0o644]]) {
    mkdirSync(join(dir, to, ".."), { recursive: true });
    copyFileSync(from, join(dir, to));
    chmodSync(join(dir, to), mode);
  }
  writeFileSync(join(dir, "package.json"), JSON.stringify(manifest, null, 2) + "\n");
  execFileSync("npm", ["pack", "--silent", "--pack-destination", out, dir], { stdio: ["ignore", "ignore", "inherit"] });
  rmSync(dir, { recursive: true });
}

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
for (const { goos, goarch, path } of binaries) {
  const name = nameFor({ os: goos, arch: goarch });
  const program = goos === "windows" ? "mcp-toolhub.exe" : "mcp-toolhub";
  const about = { description: `The program of mcp-toolhub for ${goos} on ${goarch}`, os: [npmOS(goos)], cpu: [npmArch(goarch)] };
  pack({ name, ...common, ...about, preferUnplugged: true }, [
    [path, `bin/${program}`, 0o755],
    [join(here, "made", "THIRD_PARTY_NOTICES"), "THIRD_PARTY_NOTICES", 0o644],
  ]);
}
pack(
  {
    name: "mcp-toolhub",
    ...common,
    description: "One MCP endpoint in front of many MCP servers",
    keywords: ["mcp", "model-context-protocol", "gateway", "proxy"],
    bin: { "mcp-toolhub": "bin/mcp-toolhub.js" },
    engines: { node: ">=18" },
    optionalDependencies: Object.fromEntries(systems.map((s) => [nameFor(s), version])),
  },
  [
    [join(here, "npm", "mcp-toolhub.js"), "bin/mcp-toolhub.js", 0o755],
    [join(here, "..", "..", "README.md"), "README.md", 0o644],
  ],
);
