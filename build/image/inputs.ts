import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFile, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import inputs from "./inputs.json" with { type: "json" };

const run = promisify(execFile);

export type Architecture = keyof typeof inputs.node;

/** A component of the image that comes from elsewhere. */
export interface Input {
  readonly name: string;
  readonly version: string;
  /** A package URL (purl). */
  readonly uri: string;
  readonly sha256: string;
  readonly path: string;
}

export function sha256(data: Buffer): string {
  return createHash("sha256").update(data).digest("hex");
}

/**
 * Fetches Node for a platform from the npm registry.
 *
 * @throws Error if it is not what inputs.json pins.
 */
export async function fetchNode(
  architecture: Architecture,
  version: string,
  directory: string,
): Promise<Input> {
  const { package: name, integrity } = inputs.node[architecture];
  await mkdir(directory, { recursive: true });
  const args = ["pack", `${name}@${version}`, "--silent", "--pack-destination", directory];
  await run("npm", args, { cwd: directory });
  const path = join(directory, `${name}-${version}.tgz`);
  const data = await readFile(path);
  const found = `sha512-${createHash("sha512").update(data).digest("base64")}`;
  if (found !== integrity)
    throw new Error(`${name}@${version} is ${found}, not what inputs.json pins`);
  return { name, version, uri: `pkg:npm/${name}@${version}`, sha256: sha256(data), path };
}

/**
 * Fetches the Debian packages that Node needs, for any architecture, verified with the keys that this machine's apt trusts.
 * Does not change what is installed.
 */
export async function fetchDebian(architecture: Architecture, directory: string): Promise<Input[]> {
  const state = join(directory, "apt");
  const sources = join(state, "sources");
  for (const each of ["lists/partial", "cache/archives/partial", "sources"]) {
    await mkdir(join(state, each), { recursive: true });
  }
  await writeFile(join(state, "status"), "");
  const parts = "/etc/apt/sources.list.d";
  for (const file of await readdir(parts)) {
    const ofDebian = (await readFile(join(parts, file), "utf8")).includes("debian-archive-keyring");
    if (ofDebian) await copyFile(join(parts, file), join(sources, file));
  }
  const options = {
    "Dir::State::lists": join(state, "lists"),
    "Dir::State::status": join(state, "status"),
    "Dir::Cache": join(state, "cache"),
    "Dir::Etc::sourceparts": sources,
    "APT::Architecture": architecture,
    "APT::Architectures": architecture,
    "APT::Sandbox::User": "root",
    "Acquire::Languages": "none",
  };
  const flags = Object.entries(options).flatMap(([name, value]) => ["-o", `${name}=${value}`]);
  await run("apt-get", [...flags, "update", "-qq"]);
  const downloads = join(directory, "debian");
  await mkdir(downloads, { recursive: true });
  await run("apt-get", [...flags, "download", "-qq", ...inputs.debian], { cwd: downloads });
  const files = (await readdir(downloads)).toSorted();
  return Promise.all(
    files.map(async (file) => {
      const path = join(downloads, file);
      const { stdout } = await run("dpkg-deb", [
        "--show",
        "--showformat=${Package} ${Version}",
        path,
      ]);
      const [name = "", version = ""] = stdout.split(" ");
      const uri = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${architecture}`;
      return { name, version, uri, sha256: sha256(await readFile(path)), path };
    }),
  );
}
