/**
 * Returns a kustomization with the three Secrets that the component `deploy/kubernetes/sidecar` mounts.
 *
 * @param signingKey the key file, relative to the kustomization.
 */
export function kustomization(signingKey: string): string {
  return `# kubectl apply -k . creates the Secrets that deploy/kubernetes/sidecar mounts. The component has a config.yaml of its own.
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
secretGenerator:
  - name: sallyport-users
    files: [users.yaml]
  - name: sallyport-tls
    type: kubernetes.io/tls
    files: [tls.crt, tls.key]
  - name: sallyport-keys
    files: [${signingKey}]
# The component names these Secrets. Sallyport follows changes of their content.
generatorOptions:
  disableNameSuffixHash: true
`;
}
