import { execFileSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const SIZE = 256 * 1024;

/** Mounts a small tmpfs. @returns whether that is possible: only for root, and not in every container. */
function mounted(directory: string, bytes: number): boolean {
  try {
    const options = ["-t", "tmpfs", "-o", `size=${bytes},mode=755`, "tmpfs", directory];
    execFileSync("mount", options, { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

export interface SmallDisk extends AsyncDisposable {
  readonly path: string;
  /** Uses up all space. */
  fill(): void;
  free(): void;
}

/** Creates a file system of a few pages. @returns undefined if that is not possible here. */
export async function smallDisk(bytes = SIZE): Promise<SmallDisk | undefined> {
  const directory = await temporaryDirectory();
  const { path } = directory;
  if (!mounted(path, bytes)) {
    await directory.close();
    return undefined;
  }
  const ballast = join(path, "ballast");
  return {
    path,
    fill() {
      const page = Buffer.alloc(4_096);
      try {
        for (;;) writeFileSync(ballast, page, { flag: "a" });
      } catch (error) {
        if (!(error instanceof Error && "code" in error && error.code === "ENOSPC")) throw error;
      }
    },
    free: () => rmSync(ballast),
    async [Symbol.asyncDispose](): Promise<void> {
      execFileSync("umount", ["-l", path]);
      await directory.close();
    },
  };
}
