import { join, relative } from "node:path";
import { DEPLOY } from "../deploy/documents.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { IMAGES } from "./cluster.ts";
import { kubectl } from "./kubectl.ts";
import type { Space } from "./space.ts";

/** Applies a directory of deploy/kubernetes as it is, in a space. Gives what kubectl warns of. */
export async function applySample(space: Space, sample: string): Promise<string> {
  await using directory = await temporaryDirectory();
  // Kustomize takes relative paths only.
  const resources = [relative(directory.path, join(DEPLOY, "kubernetes", sample))];
  const kustomization = { namespace: space.name, resources, images: IMAGES };
  await directory.write("kustomization.yaml", JSON.stringify(kustomization));
  return (await kubectl(["apply", "-k", directory.path])).stderr;
}
