/** Sets up a pod in a directory the way a kubelet would, and starts its containers according to the manifest. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chown, mkdir, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import type { FinalStage } from "../support/image-layout.ts";
import { until } from "../support/until.ts";
import { type Container, contentOf, type Manifest, type PodSpec } from "./manifests.ts";

const isRoot = process.getuid?.() === 0;

export interface PodRoot {
  /** The directory for the image and the volumes. */
  readonly root: string;
  readonly pod: PodSpec;
  /** The ConfigMaps and Secrets among them fill the volumes. */
  readonly manifests: readonly Manifest[];
}

export interface Started {
  /** The lines of its log. */
  readonly log: readonly Readonly<Record<string, unknown>>[];
  /** Waits for a line with this `msg`, and returns the port in it. */
  port(msg: string): Promise<number>;
  signal(name: NodeJS.Signals): void;
  /** The exit code, or the signal that terminated it. */
  readonly exit: Promise<number | NodeJS.Signals>;
}

/** A file of a volume, with its mode in the manifest. */
interface VolumeFile {
  readonly path: string;
  readonly content: string;
  readonly mode: number;
}

/**
 * Writes every volume that the container mounts, with the specified modes; if run as root, with the owner `root` and
 * the group `fsGroup`. Paths in ConfigMaps are rewritten to be below the directory.
 */
export async function mountVolumes(place: PodRoot, container: Container): Promise<void> {
  for (const { name, mountPath } of container.volumeMounts ?? []) {
    const directory = join(place.root, mountPath);
    await writeAsKubelet(directory, filesOf(place, name), place.pod.securityContext?.fsGroup ?? 0);
  }
}

function filesOf(place: PodRoot, name: string): VolumeFile[] {
  const { pod, manifests } = place;
  const volume = pod.volumes?.find((each) => each.name === name);
  if (volume === undefined) throw new Error(`the pod has no volume ${name}`);
  if ("secret" in volume) {
    const { secretName, defaultMode: mode } = volume.secret;
    const content = contentNamed(manifests, "Secret", secretName);
    return Object.entries(content).map(([path, content]) => ({ path, content, mode }));
  }
  if ("emptyDir" in volume) return [];
  const { defaultMode: mode, sources } = volume.projected;
  return sources.flatMap((source) => {
    const kind = "secret" in source ? "Secret" : "ConfigMap";
    const { name, items } = "secret" in source ? source.secret : source.configMap;
    const content = contentNamed(manifests, kind, name);
    return items.map(({ key, path }) => {
      const text = content[key];
      if (text === undefined) throw new Error(`${kind} ${name} has no key ${key}`);
      return { path, content: kind === "ConfigMap" ? remapped(text, place) : text, mode };
    });
  });
}

function contentNamed(
  manifests: readonly Manifest[],
  kind: "Secret" | "ConfigMap",
  name: string,
): Record<string, string> {
  const found = manifests.find((each) => each.kind === kind && each.metadata.name === name);
  if (found?.kind !== "Secret" && found?.kind !== "ConfigMap") {
    throw new Error(`there is no ${kind} ${name}`);
  }
  return contentOf(found);
}

/** Writes the files to a dated directory, a link `..data` to it, and a link through that for each top-level name. */
async function writeAsKubelet(
  directory: string,
  files: VolumeFile[],
  group: number,
): Promise<void> {
  const dated = "..2026_11_20_12_00_00.1";
  await mkdir(join(directory, dated), { recursive: true });
  for (const { path, content, mode } of files) {
    const file = join(directory, dated, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, content, { mode });
    if (isRoot) await chown(file, 0, group);
  }
  await symlink(dated, join(directory, "..data"));
  const names = new Set(files.map(({ path }) => path.split("/")[0] ?? ""));
  for (const name of names) {
    await symlink(join("..data", name), join(directory, name));
  }
}

/** Moves absolute paths of the container below `root`; longer mount paths are replaced first. */
function remapped(text: string, { root, pod }: PodRoot): string {
  const mounts = [...(pod.initContainers ?? []), ...pod.containers].flatMap(
    ({ volumeMounts = [] }) => volumeMounts.map(({ mountPath }) => mountPath),
  );
  const paths = ["/nodejs/", "/app/", ...mounts].toSorted((a, b) => b.length - a.length);
  return text.replaceAll(new RegExp(`(?<![\\w/.])(?:${paths.join("|")})`, "g"), `${root}$&`);
}

/**
 * Starts a container: its command and arguments, or those of the image, with the environment of both, as its user. The
 * files of the image must be below the root.
 * @param over variables that differ on this machine, such as ports.
 */
export function startContainer(
  place: PodRoot,
  stage: FinalStage,
  container: Container,
  over: Readonly<Record<string, string>>,
): Started {
  const { entrypoint, instructions } = stage;
  const command = [
    ...(container.command ?? entrypoint),
    ...(container.args ?? (container.command === undefined ? imageArguments(instructions) : [])),
  ].map((word) => remapped(word, place));
  const own = (container.env ?? []).map(({ name, value }) => [name, value] as const);
  const env = Object.entries({ ...imageEnvironment(instructions), ...Object.fromEntries(own) });
  const [program = "", ...args] = command;
  const child = spawn(program, args, {
    uid: container.securityContext.runAsUser,
    gid: container.securityContext.runAsGroup,
    cwd: join(place.root, "app"),
    env: {
      ...Object.fromEntries(env.map(([name, value]) => [name, remapped(value, place)])),
      ...over,
    },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const log: Record<string, unknown>[] = [];
  createInterface({ input: child.stdout }).on("line", (line) => {
    if (line.startsWith("{")) log.push(JSON.parse(line));
  });
  const exit = once(child, "exit").then(
    ([code, signal]): number | NodeJS.Signals => code ?? signal,
  );
  const portOf = (msg: string): number => Number(log.find((line) => line["msg"] === msg)?.["port"]);
  return {
    log,
    async port(msg) {
      await until(() => portOf(msg) > 0, 20_000);
      return portOf(msg);
    },
    signal: (name) => void child.kill(name),
    exit,
  };
}

/** Returns the variables set with `ENV NAME=VALUE` in the image. */
function imageEnvironment(instructions: readonly string[]): Record<string, string> {
  const found = instructions.flatMap((line) => {
    const [, name, value] = /^ENV (\w+)=(\S+)$/.exec(line) ?? [];
    return name === undefined || value === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(found);
}

/** Returns the arguments from `CMD ["…"]` of the image. */
function imageArguments(instructions: readonly string[]): string[] {
  const line = instructions.find((each) => each.startsWith("CMD "));
  return line === undefined ? [] : (JSON.parse(line.slice("CMD ".length)) as string[]);
}
