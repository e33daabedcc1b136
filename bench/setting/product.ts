import { copyFile, cp, lstat, mkdir, readdir, symlink } from "node:fs/promises";
import { join, resolve } from "node:path";
import { run } from "../machine/children.ts";

export const REPOSITORY = resolve(import.meta.dirname, "../..");

/** Builds what is shipped, beside the dependencies that are installed here. @returns the script to start. */
export async function buildProduct(directory: string): Promise<string> {
  await mkdir(directory, { recursive: true });
  const compiler = join(REPOSITORY, "node_modules/typescript/bin/tsc");
  const configuration = join(REPOSITORY, "tsconfig.build.json");
  const dist = join(directory, "dist");
  await run(process.execPath, [compiler, "-p", configuration, "--outDir", dist], 120_000);
  await copyFile(join(REPOSITORY, "package.json"), join(directory, "package.json"));
  await symlink(join(REPOSITORY, "node_modules"), join(directory, "node_modules"));
  return join(dist, "main.js");
}

/** Installs what production needs and nothing else, with a built `dist`. @returns the script to start. */
export async function installProduct(directory: string, dist: string): Promise<string> {
  await mkdir(directory, { recursive: true });
  for (const name of ["package.json", "package-lock.json"]) {
    await copyFile(join(REPOSITORY, name), join(directory, name));
  }
  const flags = ["--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund"];
  await run("npm", ["ci", "--prefix", directory, ...flags], 180_000);
  await cp(dist, join(directory, "dist"), { recursive: true });
  return join(directory, "dist/main.js");
}

/** Bytes that a directory occupies on the disk, as `du` counts them. */
export async function occupiedBytes(directory: string): Promise<number> {
  const names = await readdir(directory, { recursive: true });
  const sizes = await Promise.all(
    names.map(async (name) => {
      const { blocks } = await lstat(join(directory, name));
      return blocks * 512;
    }),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}
