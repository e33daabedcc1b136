import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface TemporaryDirectory extends AsyncDisposable {
  readonly path: string;
  /** Writes a file. @returns its absolute path. */
  write(name: string, content: string | Buffer): Promise<string>;
  close(): Promise<void>;
}

/** Creates a directory; `close` removes it, with retries, since a killed process may still write to it for a moment. */
export async function temporaryDirectory(): Promise<TemporaryDirectory> {
  const path = await mkdtemp(join(tmpdir(), "sallyport-"));
  const close = (): Promise<void> => rm(path, { recursive: true, force: true, maxRetries: 10 });
  return {
    path,
    async write(name, content) {
      const file = join(path, name);
      await writeFile(file, content);
      return file;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}
