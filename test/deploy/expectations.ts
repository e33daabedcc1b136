/** Expectations for every pod with Sallyport, however it was created. */
import { expect } from "vitest";
import { parse } from "yaml";
import { parseDuration } from "../../src/lib/text/duration.ts";
import { type Container, containerOf, type PodSpec } from "./manifests.ts";

/**
 * Expects the profile `restricted` of the Pod Security Standards, a read-only root, and Secrets that only the group can
 * read.
 */
export function expectHardened(pod: PodSpec): void {
  for (const { securityContext, resources } of [...(pod.initContainers ?? []), ...pod.containers]) {
    expect(securityContext).toEqual({
      runAsNonRoot: true,
      runAsUser: 65_532,
      runAsGroup: 65_532,
      readOnlyRootFilesystem: true,
      allowPrivilegeEscalation: false,
      privileged: false,
      capabilities: { drop: ["ALL"] },
      seccompProfile: { type: "RuntimeDefault" },
    });
    expect(resources.requests.memory).toBeDefined();
    expect(resources.limits.memory).toBeDefined();
    expect(resources.limits.cpu).toBeUndefined();
  }
  for (const volume of pod.volumes ?? []) {
    if ("emptyDir" in volume) continue;
    const mode = "secret" in volume ? volume.secret.defaultMode : volume.projected.defaultMode;
    expect(mode).toBe(0o440);
  }
  const { volumeMounts = [] } = containerOf(pod, "sallyport");
  expect(volumeMounts.map(({ readOnly }) => readOnly)).toEqual(volumeMounts.map(() => true));
}

/**
 * Sallyport never uses the API server. In a sidecar's pod the application may, so the token is hidden only from our
 * container: Kubernetes does not mount it if something else is already mounted there.
 */
export function expectNoServiceAccountToken(pod: PodSpec): void {
  if (pod.automountServiceAccountToken === false) return;
  const { volumeMounts = [] } = containerOf(pod, "sallyport");
  const mount = volumeMounts.find(
    ({ mountPath }) => mountPath === "/var/run/secrets/kubernetes.io/serviceaccount",
  );
  const volume = pod.volumes?.find(({ name }) => name === mount?.name);
  expect(volume).toMatchObject({ emptyDir: {} });
}

/**
 * Expects all probes to query the admin listener, pages independent of the backend. The first one waits until all is
 * loaded.
 */
export function expectProbes({ ports = [], ...container }: Container): void {
  expect(ports).toEqual([
    { name: "https", containerPort: 8443, protocol: "TCP" },
    { name: "admin", containerPort: 9464, protocol: "TCP" },
  ]);
  const { startupProbe, livenessProbe, readinessProbe } = container;
  // Otherwise every start would cause a warning event: "connection refused".
  expect(startupProbe?.initialDelaySeconds).toBe(1);
  expect(probePaths(container)).toEqual(["/startupz", "/livez", "/readyz"]);
  for (const probe of [startupProbe, livenessProbe, readinessProbe]) {
    expect(probe?.httpGet.port).toBe("admin");
  }
  // A hanging process does not drain: waiting for the pod's grace period would only delay its end.
  expect(livenessProbe?.terminationGracePeriodSeconds).toBe(10);
}

/** Returns the paths of the startup, liveness and readiness probes. */
export function probePaths(container: Omit<Container, "ports">): string[] {
  const { startupProbe, livenessProbe, readinessProbe } = container;
  return [startupProbe, livenessProbe, readinessProbe].map((probe) => probe?.httpGet.path ?? "");
}

/** Seconds that an application is granted to stop by itself, in addition to its preStop hook. */
const APPLICATION = 10;

/**
 * Expects a grace period longer than the sum of everything that runs within it. Requests are still served while the
 * cluster learns that the pod terminates, and in a sidecar's pod the application is still running then.
 */
export function expectTimeToStop(pod: PodSpec, configuration: string): void {
  const { server } = parse(configuration) as {
    server: { drain?: { delay: string; timeout: string } };
  };
  const { delay, timeout } = server.drain ?? { delay: "5s", timeout: "20s" };
  const drain = (milliseconds(delay) + milliseconds(timeout)) / 1000;
  const sleeps = pod.containers.map(({ lifecycle }) =>
    lifecycle !== undefined && "sleep" in lifecycle.preStop ? lifecycle.preStop.sleep.seconds : 0,
  );
  const isSidecar = pod.initContainers?.some(({ name }) => name === "sallyport") === true;
  const before = isSidecar ? Math.max(...sleeps) + APPLICATION : 0;
  expect(milliseconds(delay)).toBeGreaterThanOrEqual(5_000);
  if (isSidecar) expect(Math.min(...sleeps)).toBeGreaterThan(milliseconds(delay) / 1000);
  expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(before + drain);
}

function milliseconds(text: string): number {
  const value = parseDuration(text);
  if (value === undefined) throw new Error(`${text} is no duration`);
  return value;
}
