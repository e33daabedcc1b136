import { userInfo } from "node:os";
import { resolve } from "node:path";
import { ownArguments } from "./own-command.ts";

/** Returns a hardened systemd unit that runs the deployment as the user who creates it. */
export function systemdUnit(directory: string): string {
  const command = [...ownArguments(), "serve", "--config", resolve(directory, "config.yaml")];
  return `# systemctl link ${quoted(resolve(directory, "sallyport.service"))}
# systemctl enable --now sallyport
[Unit]
Description=Sallyport authenticating proxy
Wants=network-online.target
After=network-online.target

[Service]
User=${userInfo().username}
ExecStart=${command.map(quoted).join(" ")}
ExecReload=/bin/kill -HUP $MAINPID
Restart=on-failure
# Longer than server.drain.delay and server.drain.timeout together.
TimeoutStopSec=45
LimitNOFILE=65536
# Ports below 1024.
AmbientCapabilities=CAP_NET_BIND_SERVICE
CapabilityBoundingSet=CAP_NET_BIND_SERVICE
NoNewPrivileges=yes
LockPersonality=yes
PrivateDevices=yes
PrivateTmp=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectSystem=strict
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
UMask=0077

[Install]
WantedBy=multi-user.target
`;
}

/** Quotes a word of a command line in a unit file (systemd.syntax(7)), where `%` and `$` would be expanded. */
function quoted(word: string): string {
  const plain = word.replaceAll("%", "%%").replaceAll("$", "$$$$");
  return /^[\w@%$+=:,./-]+$/.test(plain) ? plain : JSON.stringify(plain);
}

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
