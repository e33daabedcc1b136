import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Input } from "./inputs.ts";

const run = promisify(execFile);

interface Spdx {
  readonly SPDXID: string;
  readonly packages: object[];
  readonly relationships: object[];
  readonly creationInfo: object;
  [field: string]: unknown;
}

/** Returns the software bill of materials as SPDX: the libraries in the lock file, and the other components of the image. */
export async function billOfMaterials(
  repository: string,
  inputs: readonly Input[],
  created: string,
): Promise<Spdx> {
  const ofLibraries = await librariesOf(repository);
  const more = inputs.map(({ name, version, uri, sha256 }, index) => ({
    name,
    versionInfo: version,
    downloadLocation: "NOASSERTION",
    filesAnalyzed: false,
    SPDXID: `SPDXRef-Input-${index + 1}`,
    checksums: [{ algorithm: "SHA256", checksumValue: sha256 }],
    externalRefs: [
      { referenceCategory: "PACKAGE-MANAGER", referenceType: "purl", referenceLocator: uri },
    ],
  }));
  const relations = more.map(({ SPDXID }) => ({
    spdxElementId: "SPDXRef-DOCUMENT",
    relatedSpdxElement: SPDXID,
    relationshipType: "DESCRIBES",
  }));
  const { creationInfo } = ofLibraries;
  return {
    ...ofLibraries,
    creationInfo: { ...creationInfo, created },
    packages: [...ofLibraries.packages, ...more],
    relationships: [...ofLibraries.relationships, ...relations],
  };
}

interface Manifest {
  devDependencies?: object;
  [field: string]: unknown;
}

interface LockFile {
  packages: Record<string, Manifest & { readonly dev?: boolean }>;
  [field: string]: unknown;
}

/**
 * Returns the libraries in the product. npm (11.19) omits a library that a development dependency needs as well, so it gets
 * a copy of the package without those dependencies.
 */
async function librariesOf(repository: string): Promise<Spdx> {
  const directory = await mkdtemp(join(tmpdir(), "sallyport-sbom-"));
  try {
    const [manifest, lockFile]: [Manifest, LockFile] = [
      JSON.parse(await readFile(join(repository, "package.json"), "utf8")),
      JSON.parse(await readFile(join(repository, "package-lock.json"), "utf8")),
    ];
    const kept = Object.entries(lockFile.packages).filter(([, { dev }]) => dev !== true);
    lockFile.packages = Object.fromEntries(kept);
    delete manifest.devDependencies;
    delete lockFile.packages[""]?.devDependencies;
    await writeFile(join(directory, "package.json"), JSON.stringify(manifest));
    await writeFile(join(directory, "package-lock.json"), JSON.stringify(lockFile));
    const args = ["sbom", "--sbom-format=spdx", "--package-lock-only"];
    const { stdout } = await run("npm", args, { cwd: directory, maxBuffer: 64 * 1024 ** 2 });
    const libraries: Spdx = JSON.parse(stdout);
    return libraries;
  } finally {
    await rm(directory, { recursive: true });
  }
}

/** Returns the provenance of the image as an in-toto statement (SLSA 1.0): its components, and the commit. Not signed. */
export function provenance(about: {
  readonly name: string;
  readonly digest: string;
  readonly revision: string;
  readonly platforms: readonly string[];
  readonly lockFile: string;
  readonly inputs: readonly Input[];
}): object {
  const { name, digest, revision, platforms, lockFile, inputs } = about;
  return {
    _type: "https://in-toto.io/Statement/v1",
    subject: [{ name, digest: { sha256: digest.replace("sha256:", "") } }],
    predicateType: "https://slsa.dev/provenance/v1",
    predicate: {
      buildDefinition: {
        buildType: "urn:sallyport:npm-run-image:v1",
        externalParameters: { platforms },
        internalParameters: { node: process.versions.node },
        resolvedDependencies: [
          { name: "source", digest: { gitCommit: revision } },
          { name: "package-lock.json", digest: { sha256: lockFile } },
          ...inputs.map(({ name, uri, sha256 }) => ({ name, uri, digest: { sha256 } })),
        ],
      },
      runDetails: { builder: { id: "urn:sallyport:npm-run-image" } },
    },
  };
}
