import { readFile } from "node:fs/promises";
import { join } from "node:path";

/** The container settings of the last stage of the Dockerfile, with the names of the OCI image specification. */
export interface ContainerConfig {
  readonly User: string;
  readonly WorkingDir: string;
  readonly Entrypoint: readonly string[];
  readonly Cmd: readonly string[];
  readonly Env: readonly string[];
  readonly ExposedPorts: Readonly<Record<string, object>>;
  readonly Labels: Readonly<Record<string, string>>;
}

/** Reads the last stage, so that `npm run image` builds the same container as the Dockerfile. */
export async function containerConfig(
  root: string,
  values: Readonly<Record<"VERSION" | "REVISION", string>>,
): Promise<ContainerConfig> {
  const text = await readFile(join(root, "Dockerfile"), "utf8");
  const lines = text.replaceAll(/\\\n\s*/g, "").split("\n");
  const stage = lines.slice(lines.findLastIndex((line) => line.startsWith("FROM ")) + 1);
  const all = (keyword: string): string[] =>
    stage.flatMap((line) =>
      line.startsWith(`${keyword} `) ? [line.slice(keyword.length + 1)] : [],
    );
  const last = (keyword: string): string => all(keyword).at(-1) ?? "";
  const words = (keyword: string): string[] => {
    const list: string[] = JSON.parse(last(keyword));
    return list;
  };
  const filled = (value: string): string =>
    value.replaceAll(
      /\$\{(VERSION|REVISION)\}/g,
      (_, name: "VERSION" | "REVISION") => values[name],
    );
  const labels = all("LABEL").flatMap((line) => [...line.matchAll(/([\w.]+)="([^"]*)"/g)]);
  return {
    User: last("USER"),
    WorkingDir: last("WORKDIR"),
    Entrypoint: words("ENTRYPOINT"),
    Cmd: words("CMD"),
    Env: ["PATH=/nodejs/bin", ...all("ENV")],
    ExposedPorts: Object.fromEntries(
      last("EXPOSE")
        .split(" ")
        .map((port) => [`${port}/tcp`, {}]),
    ),
    Labels: Object.fromEntries(labels.map(([, name = "", value = ""]) => [name, filled(value)])),
  };
}
