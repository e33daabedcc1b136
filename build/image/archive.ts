import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ContainerConfig } from "./dockerfile.ts";
import { type Architecture, sha256 } from "./inputs.ts";
import type { Layer } from "./layers.ts";

/** The image of one platform. */
export interface PlatformImage {
  readonly architecture: Architecture;
  readonly layers: readonly Layer[];
}

interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

const TYPE = "application/vnd.oci.image";

/**
 * Writes an OCI image layout: one index with an image for each platform.
 *
 * @param name of the image in a registry, with a tag.
 * @returns the digest of the index.
 */
export async function writeLayout(
  directory: string,
  images: readonly PlatformImage[],
  about: { readonly config: ContainerConfig; readonly created: string; readonly name: string },
): Promise<string> {
  const { config, created, name } = about;
  const blobs = join(directory, "blobs/sha256");
  await mkdir(blobs, { recursive: true });
  const put = async (data: Buffer, mediaType: string): Promise<Descriptor> => {
    const hex = sha256(data);
    await writeFile(join(blobs, hex), data);
    return { mediaType, digest: `sha256:${hex}`, size: data.length };
  };
  const putJson = (value: object, mediaType: string): Promise<Descriptor> =>
    put(Buffer.from(JSON.stringify(value)), mediaType);
  const manifests = [];
  for (const { architecture, layers } of images) {
    const image = {
      created,
      architecture,
      os: "linux",
      config,
      rootfs: { type: "layers", diff_ids: layers.map(({ diffId }) => diffId) },
      history: layers.map(({ title }) => ({ created, created_by: `npm run image: ${title}` })),
    };
    const stored: Descriptor[] = [];
    for (const { data } of layers) stored.push(await put(data, `${TYPE}.layer.v1.tar+gzip`));
    const manifest = {
      schemaVersion: 2,
      mediaType: `${TYPE}.manifest.v1+json`,
      config: await putJson(image, `${TYPE}.config.v1+json`),
      layers: stored,
      annotations: config.Labels,
    };
    const platform = {
      architecture,
      os: "linux",
      ...(architecture === "arm64" ? { variant: "v8" } : {}),
    };
    manifests.push({ ...(await putJson(manifest, `${TYPE}.manifest.v1+json`)), platform });
  }
  const mediaType = `${TYPE}.index.v1+json`;
  const index = await putJson(
    { schemaVersion: 2, mediaType, manifests, annotations: config.Labels },
    mediaType,
  );
  const tag = name.split(":").at(-1) ?? "latest";
  const annotations = {
    "org.opencontainers.image.ref.name": tag,
    "io.containerd.image.name": name,
  };
  const top = { schemaVersion: 2, mediaType, manifests: [{ ...index, annotations }] };
  await writeFile(join(directory, "index.json"), JSON.stringify(top));
  await writeFile(join(directory, "oci-layout"), JSON.stringify({ imageLayoutVersion: "1.0.0" }));
  return index.digest;
}
