/**
 * `npm run image`: builds the image as an OCI archive for amd64 and arm64, without Docker or any daemon, and without an
 * image registry. Needs npm, and apt-get, dpkg-deb and tar from Debian.
 */
import { execFile } from "node:child_process";
import { mkdtemp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs, promisify } from "node:util";
import { type PlatformImage, writeLayout } from "./archive.ts";
import { containerConfig } from "./dockerfile.ts";
import { type Architecture, fetchDebian, fetchNode, type Input, sha256 } from "./inputs.ts";
import {
  applicationRoot,
  debianRoot,
  givenLayer,
  type Layer,
  layerOf,
  nodeRoot,
} from "./layers.ts";
import { billOfMaterials, provenance } from "./statements.ts";

const HELP = `Usage: npm run image -- [options]

Builds the image for amd64 and arm64 as an OCI archive, with a bill of materials (SPDX) and the provenance
of what is in it. Needs npm, apt-get, dpkg-deb and tar; no daemon.

      --out DIRECTORY       where the files go (default: image)
      --platform LIST       default: amd64,arm64
      --name NAME:TAG       default: sallyport:VERSION
      --revision COMMIT     default: that of the checkout
      --base ARCH=FILE@sha256:DIGEST   a root file system as a tar file instead of Debian's packages; repeatable`;

const REPOSITORY = resolve(import.meta.dirname, "../..");
const run = promisify(execFile);

interface Manifest {
  readonly version: string;
  readonly devDependencies: { readonly node: string };
}

interface Built {
  readonly image: PlatformImage;
  readonly inputs: readonly Input[];
}

const git = async (...args: string[]): Promise<string> =>
  (await run("git", args, { cwd: REPOSITORY })).stdout.trim();

/** Returns the layers that depend on the platform: the base and Node. */
async function platformLayers(
  architecture: Architecture,
  options: {
    readonly base: string | undefined;
    readonly nodeVersion: string;
    readonly epoch: number;
    readonly scratch: string;
  },
): Promise<{ readonly layers: Layer[]; readonly inputs: Input[] }> {
  const { base, nodeVersion, epoch, scratch } = options;
  const here = join(scratch, architecture);
  const given = base === undefined ? undefined : await givenLayer(base);
  const node = await fetchNode(architecture, nodeVersion, join(here, "npm"));
  await nodeRoot(node, join(here, "node"));
  const nodeLayer = await layerOf(`Node ${nodeVersion}`, join(here, "node"), epoch);
  if (given !== undefined) {
    return { layers: [given, nodeLayer], inputs: [given.input, node] };
  }
  const packages = await fetchDebian(architecture, here);
  await debianRoot(packages, join(here, "debian-root"));
  const names = packages.map(({ name }) => name).join(", ");
  const baseLayer = await layerOf(`Debian: ${names}`, join(here, "debian-root"), epoch);
  return { layers: [baseLayer, nodeLayer], inputs: [...packages, node] };
}

function basesOf(given: readonly string[]): Map<string, string> {
  return new Map(
    given.map((each) => {
      const at = each.indexOf("=");
      return [each.slice(0, at), each.slice(at + 1)] as const;
    }),
  );
}

function isArchitecture(word: string): word is Architecture {
  return word === "amd64" || word === "arm64";
}

async function build(scratch: string): Promise<void> {
  const text = { type: "string" } as const;
  const { values } = parseArgs({
    options: {
      out: text,
      platform: text,
      name: text,
      revision: text,
      base: { type: "string", multiple: true },
      help: { type: "boolean", short: "h" },
    },
  });
  if (values.help === true) {
    process.stdout.write(`${HELP}\n`);
    return;
  }
  const manifest: Manifest = JSON.parse(await readFile(join(REPOSITORY, "package.json"), "utf8"));
  const { version, devDependencies } = manifest;
  const platforms = (values.platform ?? "amd64,arm64").split(",");
  if (!platforms.every(isArchitecture)) throw new Error("--platform knows amd64 and arm64");
  const revision = values.revision ?? (await git("rev-parse", "HEAD"));
  const epoch = Number(
    process.env["SOURCE_DATE_EPOCH"] ?? (await git("log", "-1", "--format=%ct")),
  );
  const name = values.name ?? `sallyport:${version}`;
  const out = resolve(values.out ?? "image");
  const bases = basesOf(values.base ?? []);

  const dist = join(scratch, "dist");
  await run("npm", ["run", "--silent", "build", "--", "--dir", dist], { cwd: REPOSITORY });
  await applicationRoot(REPOSITORY, dist, join(scratch, "application"));
  const application = await layerOf("Sallyport", join(scratch, "application"), epoch);
  const built: Built[] = [];
  for (const architecture of platforms) {
    const options = {
      base: bases.get(architecture),
      nodeVersion: devDependencies.node,
      epoch,
      scratch,
    };
    const { layers, inputs } = await platformLayers(architecture, options);
    built.push({ image: { architecture, layers: [...layers, application] }, inputs });
  }

  const created = new Date(epoch * 1000).toISOString().replace(".000", "");
  const layout = join(scratch, "layout");
  const config = await containerConfig(REPOSITORY, { VERSION: version, REVISION: revision });
  const images = built.map(({ image }) => image);
  const digest = await writeLayout(layout, images, { config, created, name });
  const inputs = built.flatMap((each) => each.inputs);
  const lockFile = sha256(await readFile(join(REPOSITORY, "package-lock.json")));
  await mkdir(out, { recursive: true });
  const file = join(out, `sallyport-${version}`);
  const flags = ["--sort=name", `--mtime=@${epoch}`, "--owner=0", "--group=0", "--numeric-owner"];
  await run("tar", ["--create", `--file=${file}.oci.tar`, ...flags, `--directory=${layout}`, "."]);
  const bill = await billOfMaterials(REPOSITORY, inputs, created);
  await writeFile(`${file}.spdx.json`, `${JSON.stringify(bill, undefined, 2)}\n`);
  const statement = provenance({ name, digest, revision, platforms, lockFile, inputs });
  await writeFile(`${file}.provenance.json`, `${JSON.stringify(statement, undefined, 2)}\n`);
  process.stdout.write(`${file}.oci.tar ${digest}\n`);
}

const scratch = await mkdtemp(join(tmpdir(), "sallyport-image-"));
try {
  await build(scratch);
} finally {
  await rm(scratch, { recursive: true, force: true });
}
