import { mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { run } from "../machine/children.ts";
import { REPOSITORY } from "../setting/product.ts";

/**
 * Exports a commit's files into the directory, links the dependencies that are installed here, and builds the commit in its
 * own way. Rejects if the commit does not exist or cannot be built. @returns the script that starts it.
 */
export async function exportRevision(revision: string, directory: string): Promise<string> {
  await mkdir(directory, { recursive: true });
  const archive = join(directory, "revision.tar");
  const git = ["-C", REPOSITORY, "archive", "--format=tar", "-o", archive];
  await run("git", [...git, `${revision}^{commit}`]);
  await run("tar", ["-xf", archive, "-C", directory]);
  await symlink(join(REPOSITORY, "node_modules"), join(directory, "node_modules"));
  await run("npm", ["--prefix", directory, "run", "build"], 120_000);
  return join(directory, "dist/main.js");
}
