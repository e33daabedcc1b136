/** What the cluster tells of pods. */
import { expect } from "vitest";
import type { Space } from "./space.ts";

export interface Pod {
  readonly metadata: { readonly name: string; readonly deletionTimestamp?: string };
  readonly spec: { readonly serviceAccountName: string };
  readonly status: {
    readonly podIP: string;
    readonly initContainerStatuses?: readonly ContainerStatus[];
    readonly containerStatuses: readonly ContainerStatus[];
  };
}

interface ContainerStatus {
  readonly name: string;
  readonly restartCount: number;
  readonly state: {
    readonly running?: { readonly startedAt: string };
    readonly terminated?: { readonly exitCode: number; readonly finishedAt: string };
  };
}

/** Pods that are not being deleted. */
export async function podsOf(space: Space, selector: string): Promise<readonly Pod[]> {
  const { stdout } = await space.kubectl(["get", "pods", "--selector", selector, "--output=json"]);
  const { items } = JSON.parse(stdout) as { items: readonly Pod[] };
  return items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
}

/** The first of them. */
export async function onePod(space: Space, selector: string): Promise<Pod> {
  const [pod] = await podsOf(space, selector);
  if (pod === undefined) throw new Error(`there is no pod ${selector}`);
  return pod;
}

/** The status of a container, be it a native sidecar or not. */
export function containerOf({ metadata, status }: Pod, name: string): ContainerStatus {
  const all = [...(status.initContainerStatuses ?? []), ...status.containerStatuses];
  const found = all.find((each) => each.name === name);
  if (found === undefined) throw new Error(`the pod ${metadata.name} has no container ${name}`);
  return found;
}

/** Runs JavaScript in a container of a pod; gives what it prints. */
export async function evaluate(space: Space, pod: string, container: string, script: string) {
  const command = ["/nodejs/bin/node", "--input-type=module", "--eval", script];
  const { stdout } = await space.kubectl(["exec", pod, "--container", container, "--", ...command]);
  return stdout.trim();
}

/** The page of Sallyport's admin listener, asked from within its pod. */
export function adminPage(space: Space, pod: string, path: string): Promise<string> {
  const script = `console.log(await (await fetch("http://127.0.0.1:9464${path}")).text())`;
  return evaluate(space, pod, "sallyport", script);
}

/** Waits for a condition of a pod; gives the milliseconds that it took. */
export async function waitFor(space: Space, pod: string, condition: string): Promise<number> {
  const began = performance.now();
  await space.kubectl(["wait", `pod/${pod}`, `--for=${condition}`, "--timeout=180s"]);
  return Math.round(performance.now() - began);
}

/** Sallyport's container is the first init container. */
export function restarts(count: number): string {
  return `jsonpath={.status.initContainerStatuses[0].restartCount}=${count}`;
}

/** No event of the namespace tells of a violation of Pod Security. */
export async function expectNoViolation(space: Space): Promise<void> {
  const { stdout } = await space.kubectl(["get", "events", "--output=json"]);
  const { items } = JSON.parse(stdout) as { items: readonly { message?: string }[] };
  const told = items.filter(({ message = "" }) => /violat|forbidden/i.test(message));
  expect(told).toEqual([]);
}
