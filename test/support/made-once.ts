/**
 * What all test files of a run share, made once before the first: the bundle of Sallyport and the certificates. vitest runs
 * it. Where it has not run, in `soak` for example, everybody makes their own.
 */
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildInto } from "./build.ts";
import { CERTIFICATES, makeCertificates } from "./certificates.ts";
import { BUILT } from "./entry.ts";

export default async function makeOnce(): Promise<() => Promise<void>> {
  const directory = await mkdtemp(join(tmpdir(), "sallyport-run-"));
  // Some tests start it as somebody else.
  await chmod(directory, 0o755);
  await Promise.all([
    build(join(directory, "dist")),
    certify(join(directory, "certificates.json")),
  ]);
  return () => rm(directory, { recursive: true, force: true });
}

async function build(directory: string): Promise<void> {
  if (process.env["SALLYPORT_ENTRY"] !== undefined) return;
  await buildInto(directory);
  process.env[BUILT] = join(directory, "main.js");
}

async function certify(file: string): Promise<void> {
  await writeFile(file, JSON.stringify(await makeCertificates()));
  process.env[CERTIFICATES] = file;
}
