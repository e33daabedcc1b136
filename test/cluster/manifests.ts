/** Manifests of the tests' own pods. */

/** What the profile `restricted` of Pod Security asks of a container, and the resources that it needs. */
export function hardened(name: string, image: string): object {
  return {
    name,
    image,
    imagePullPolicy: "IfNotPresent",
    resources: { requests: { cpu: "10m", memory: "64Mi" }, limits: { memory: "256Mi" } },
    securityContext: {
      runAsNonRoot: true,
      runAsUser: 65_532,
      runAsGroup: 65_532,
      readOnlyRootFilesystem: true,
      allowPrivilegeEscalation: false,
      privileged: false,
      capabilities: { drop: ["ALL"] },
      seccompProfile: { type: "RuntimeDefault" },
    },
  };
}
