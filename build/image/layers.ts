import { execFile } from "node:child_process";
import { chmod, cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { type Input, sha256 } from "./inputs.ts";

const run = promisify(execFile);

export interface Layer {
  /** Describes the content in the history of the image. */
  readonly title: string;
  /** The digest of the tar file. */
  readonly diffId: string;
  /** Compressed. */
  readonly data: Buffer;
}

const MAX_TAR = 1024 ** 3;

/** Packs a directory reproducibly: the same files always give the same bytes. @param epoch the time of all files, in seconds. */
export async function layerOf(title: string, directory: string, epoch: number): Promise<Layer> {
  const { stdout } = await run(
    "tar",
    [
      ...["--create", "--file=-", "--format=gnu", "--sort=name", `--mtime=@${epoch}`],
      ...["--owner=0", "--group=0", "--numeric-owner", `--directory=${directory}`, "."],
    ],
    { encoding: "buffer", maxBuffer: MAX_TAR },
  );
  return compressed(title, stdout);
}

/** Reads a root file system from a tar file. @param reference the file and its digest. @throws Error if the digest differs. */
export async function givenLayer(reference: string): Promise<Layer & { readonly input: Input }> {
  const [, path = "", digest = ""] = /^(.+)@sha256:([0-9a-f]{64})$/.exec(reference) ?? [];
  if (path === "") throw new Error("a base needs its digest: rootfs.tar@sha256:…");
  const data = await readFile(path);
  if (sha256(data) !== digest)
    throw new Error(`${path} is sha256:${sha256(data)}, not sha256:${digest}`);
  const input = { name: path, version: "", uri: `file:${path}`, sha256: digest, path };
  return { ...compressed(`base ${path}`, data), input };
}

function compressed(title: string, tar: Buffer): Layer {
  return { title, diffId: `sha256:${sha256(tar)}`, data: gzipSync(tar, { level: 6 }) };
}

const PASSWD = `root:x:0:0:root:/root:/sbin/nologin
nonroot:x:65532:65532:nonroot:/nonexistent:/sbin/nologin
`;
const GROUP = "root:x:0:\nnonroot:x:65532:\n";

/** Unpacks Debian packages without running their scripts, and records them where scanners look for them. */
export async function debianRoot(packages: readonly Input[], root: string): Promise<void> {
  await mkdir(root, { recursive: true });
  for (const { path } of packages) await run("dpkg-deb", ["--extract", path, root]);
  for (const each of ["usr/share/doc", "usr/share/man", "usr/share/lintian", "usr/share/locale"]) {
    await rm(join(root, each), { recursive: true, force: true });
  }
  const status = join(root, "var/lib/dpkg/status.d");
  await mkdir(status, { recursive: true });
  for (const { name, path } of packages) {
    const { stdout } = await run("dpkg-deb", ["--field", path]);
    await writeFile(join(status, name), stdout);
  }
  await writeFile(join(root, "etc/passwd"), PASSWD);
  await writeFile(join(root, "etc/group"), GROUP);
  await mkdir(join(root, "tmp"), { recursive: true });
  await chmod(join(root, "tmp"), 0o1777);
  await chmod(root, 0o755);
}

/** Installs Node in the same place as the Dockerfile. */
export async function nodeRoot({ path }: Input, root: string): Promise<void> {
  const scratch = `${root}.package`;
  await mkdir(scratch, { recursive: true });
  await run("tar", ["--extract", `--file=${path}`, `--directory=${scratch}`]);
  await mkdir(join(root, "nodejs/bin"), { recursive: true });
  await cp(join(scratch, "package/bin/node"), join(root, "nodejs/bin/node"));
  await cp(join(scratch, "package/LICENSE"), join(root, "nodejs/LICENSE"));
  await run("chmod", ["-R", "u=rwX,go=rX", root]);
}

/** Copies the same files as the last stage of the Dockerfile. */
export async function applicationRoot(
  repository: string,
  dist: string,
  root: string,
): Promise<void> {
  await mkdir(join(root, "app"), { recursive: true });
  await cp(dist, join(root, "app/dist"), { recursive: true });
  await cp(join(repository, "LICENSE"), join(root, "app/LICENSE"));
  await cp(join(repository, "docs"), join(root, "app/docs"), { recursive: true });
  await run("chmod", ["-R", "u=rwX,go=rX", root]);
}
