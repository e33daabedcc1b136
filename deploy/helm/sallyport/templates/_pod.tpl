{{/*
The parts of a pod. The chart's own Deployment and charts that depend on this one (mode: sidecar) include the same:

  "sallyport.podLabels"           labels of the pod; the NetworkPolicy and the PodMonitor find it by them
  "sallyport.podAnnotations"      a hash of the configuration, so that a changed one rolls the pods
  "sallyport.podSecurityContext"  lets uid 65532 read the Secrets
  "sallyport.sidecar"             the item of initContainers
  "sallyport.volumes"             the items of volumes

All take this chart's own context: `.` here, `.Subcharts.sallyport` in a chart that depends on this one.
*/}}

{{- define "sallyport.podLabels" -}}
sallyport: {{ include "sallyport.fullname" . }}
{{- end -}}

{{- define "sallyport.podAnnotations" -}}
checksum/sallyport-config: {{ include "sallyport.config" . | sha256sum }}
{{- end -}}

{{- define "sallyport.podSecurityContext" -}}
fsGroup: 65532
{{- end -}}

{{/* The configuration file. */}}
{{- define "sallyport.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- if eq .Values.mode "service" -}}
{{- if not $config.decisions -}}
{{- fail "config.decisions is empty: in service mode it says which proxies may ask, such as { from: [10.244.0.0/16] }" -}}
{{- end -}}
{{- range $key := list "grpc" "only" -}}
{{- if not (hasKey $config.decisions $key) -}}
{{- $_ := set $config.decisions $key true -}}
{{- end -}}
{{- end -}}
{{- if and $config.decisions.grpc (not (hasKey $config.server "http2")) -}}
{{- $_ := set $config.server "http2" true -}}
{{- end -}}
{{- if not $config.upstreams -}}
{{- $_ := unset $config "upstreams" -}}
{{- end -}}
{{- else if not $config.upstreams -}}
{{- if eq .Values.mode "standalone" -}}
{{- fail "config.upstreams is empty: in standalone mode it says what Sallyport stands in front of" -}}
{{- end -}}
{{- $_ := set $config "upstreams" (dict "app" (dict "targets" (list "http://127.0.0.1:8080"))) -}}
{{- end -}}
{{- if and (eq .Values.mode "sidecar") (not $config.server.drain) -}}
{{- $_ := set $config.server "drain" (dict "delay" "5s" "timeout" "15s") -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{/* One container, as a list item. */}}
{{- define "sallyport.container" -}}
- name: sallyport
  image: {{ include "sallyport.image" . }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  args: [serve]
  {{- if eq .Values.mode "sidecar" }}
  restartPolicy: Always
  {{- end }}
  {{- with .Values.env }}
  env:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  ports:
    - { name: https, containerPort: 8443, protocol: TCP }
    - { name: admin, containerPort: 9464, protocol: TCP }
  startupProbe:
    httpGet: { path: /startupz, port: admin }
    initialDelaySeconds: 1
    periodSeconds: 1
    failureThreshold: 30
  livenessProbe:
    httpGet: { path: /livez, port: admin }
    periodSeconds: 10
    timeoutSeconds: 3
    # A hanging process does not drain, so the pod's whole grace period would be wasted.
    terminationGracePeriodSeconds: 10
  readinessProbe:
    httpGet: { path: /readyz, port: admin }
    periodSeconds: 5
    timeoutSeconds: 3
  lifecycle:
    preStop:
      exec:
        command: [/nodejs/bin/node, --disable-sigusr1, /app/dist/main.js, drain]
  resources:
    {{- toYaml .Values.resources | nindent 4 }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    readOnlyRootFilesystem: true
    allowPrivilegeEscalation: false
    privileged: false
    capabilities: { drop: [ALL] }
    seccompProfile: { type: RuntimeDefault }
  volumeMounts:
    - { name: sallyport, mountPath: /etc/sallyport, readOnly: true }
    {{- if .Values.secrets.keys }}
    - { name: sallyport-keys, mountPath: /etc/sallyport-keys, readOnly: true }
    {{- end }}
    {{- if eq .Values.mode "sidecar" }}
    # Keeps Kubernetes from mounting the ServiceAccount's token here; the application keeps its own.
    - name: no-service-account-token
      mountPath: /var/run/secrets/kubernetes.io/serviceaccount
      readOnly: true
    {{- end }}
    {{- with .Values.extraVolumeMounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}

{{- define "sallyport.sidecar" -}}
{{- if ne .Values.mode "sidecar" -}}
{{- fail "sallyport.sidecar is included, but the mode of sallyport is not sidecar" -}}
{{- end -}}
{{- include "sallyport.container" . -}}
{{- end -}}

{{- define "sallyport.volumes" -}}
- name: sallyport
  projected:
    defaultMode: 0440
    sources:
      - configMap:
          name: {{ include "sallyport.fullname" . }}
          items:
            - { key: config.yaml, path: config.yaml }
      {{- with .Values.secrets.users }}
      - secret:
          name: {{ . }}
          items:
            - { key: users.yaml, path: users.yaml }
      {{- end }}
      {{- with .Values.secrets.tls }}
      - secret:
          name: {{ . }}
          items:
            - { key: tls.crt, path: tls/tls.crt }
            - { key: tls.key, path: tls/tls.key }
      {{- end }}
{{- with .Values.secrets.keys }}
- name: sallyport-keys
  secret:
    secretName: {{ . }}
    defaultMode: 0440
{{- end }}
{{- if eq .Values.mode "sidecar" }}
- name: no-service-account-token
  emptyDir: { medium: Memory, sizeLimit: 4Ki }
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}
