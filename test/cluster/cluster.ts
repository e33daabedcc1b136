import { spawnSync } from "node:child_process";
import { KUBECTL } from "./kubectl.ts";

/** The image that the cluster's nodes have or can pull. */
export const IMAGE = process.env["SALLYPORT_IMAGE"] ?? "sallyport:0.1.0";

/** Kustomize's `images`: that image, wherever the manifests name `sallyport`. */
export const IMAGES = [{ name: "sallyport", ...imageParts(IMAGE) }];

function imageParts(image: string): { newName?: string; newTag?: string } {
  return /^(?<newName>.*?)(?::(?<newTag>[^:/]+))?$/.exec(image)?.groups ?? {};
}

/**
 * Why there is no cluster to test in; undefined when there is one. It must be named: a cluster that kubectl finds by itself
 * may be one that somebody needs.
 * @throws Error when the cluster that is named does not answer.
 */
export function whyNoCluster(): string | undefined {
  if ((process.env["KUBECONFIG"] ?? "") === "") return "KUBECONFIG names no cluster";
  const { error, status, stderr } = spawnSync(KUBECTL, ["version", "--request-timeout=10s"], {
    encoding: "utf8",
  });
  if (error !== undefined) return "there is no kubectl";
  if (status !== 0) throw new Error(`the cluster that KUBECONFIG names does not answer: ${stderr}`);
  return undefined;
}
