import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface TemporaryDirectory extends AsyncDisposable {
  readonly path: string;
  /** Writes a file and gives its absolute path. */
  write(name: string, content: string | Buffer): Promise<string>;
  close(): Promise<void>;
}

/** A directory of its own, gone after `close()`. */
export async function temporaryDirectory(): Promise<TemporaryDirectory> {
  const path = await mkdtemp(join(tmpdir(), "sallyport-"));
  const close = (): Promise<void> => rm(path, { recursive: true, force: true });
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
