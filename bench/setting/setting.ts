import { rmSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Certificate, makeCertificate } from "./certificate.ts";
import { type Algorithm, makeTokenKeys, type TokenKey } from "./tokens.ts";

/** What all peers share: keys, a certificate, and a directory that is removed at the end. */
export interface Setting extends AsyncDisposable {
  readonly directory: string;
  readonly certificate: Certificate;
  readonly keys: Readonly<Record<Algorithm, TokenKey>>;
  /** The script that starts Sallyport. */
  readonly entry: string;
  /** Writes a file and returns its path. */
  write(name: string, content: string): Promise<string>;
}

/** Creates a setting. @param prepare builds Sallyport in the directory, and returns the script that starts it. */
export async function prepareSetting(
  prepare: (directory: string) => Promise<string>,
): Promise<Setting> {
  const directory = await mkdtemp(join(tmpdir(), "sallyport-bench-"));
  // Removes it even after an interruption.
  process.once("exit", () => rmSync(directory, { recursive: true, force: true }));
  const remove = (): Promise<void> => rm(directory, { recursive: true, force: true });
  try {
    return {
      directory,
      certificate: await makeCertificate(directory),
      keys: await makeTokenKeys(directory),
      entry: await prepare(directory),
      async write(name, content) {
        const file = join(directory, name);
        await writeFile(file, content);
        return file;
      },
      [Symbol.asyncDispose]: remove,
    };
  } catch (error) {
    await remove();
    throw error;
  }
}
