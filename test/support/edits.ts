import { mkdir, readFile, rename, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";

/** The directory with the files of a proxy. */
interface Place {
  readonly directory: string;
}

/** The configuration of a test, as written to the file. */
export interface WrittenConfiguration {
  routes: Record<string, unknown>[];
  upstreams: Record<string, Record<string, unknown>>;
  server: Record<string, unknown>;
  [key: string]: unknown;
}

/** Writes a file the way editors do: it replaces the old file with a new one. */
export async function replaceFile({ directory }: Place, name: string, text: string): Promise<void> {
  const path = join(directory, name);
  await writeFile(`${path}.new`, text);
  await rename(`${path}.new`, path);
}

/** Edits config.yaml with `change`. */
export async function editConfiguration(
  place: Place,
  change: (config: WrittenConfiguration) => void,
): Promise<void> {
  const text = await readFile(join(place.directory, "config.yaml"), "utf8");
  const config: WrittenConfiguration = JSON.parse(text);
  change(config);
  await replaceFile(place, "config.yaml", JSON.stringify(config, undefined, 2));
}

let versions = 0;

/** For a link that already exists. */
const leftAlone = (): void => undefined;

/**
 * Creates or updates a directory the way the kubelet does: its entries are links into `..data`, a link that is swapped.
 *
 * @param files contents by name, or by path as in a projected volume: `tls/tls.crt`.
 */
export async function mountFiles(
  directory: string,
  files: Readonly<Record<string, string>>,
): Promise<void> {
  versions += 1;
  const version = `..version_${versions}`;
  await mkdir(join(directory, version), { recursive: true });
  for (const [name, content] of Object.entries(files)) {
    const [top = name] = name.split("/");
    await mkdir(join(directory, version, dirname(name)), { recursive: true });
    await writeFile(join(directory, version, name), content);
    await symlink(join("..data", top), join(directory, top)).catch(leftAlone);
  }
  await symlink(version, join(directory, "..data_tmp"));
  await rename(join(directory, "..data_tmp"), join(directory, "..data"));
}
