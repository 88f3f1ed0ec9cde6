{{/* The labels that find an object's pods. Takes (list . name). */}}
{{- define "gatehouse.selector" -}}
app.kubernetes.io/name: {{ index . 1 }}
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
{{- end -}}

{{/* The labels of an object. Takes (list . name). */}}
{{- define "gatehouse.labels" -}}
{{- $root := index . 0 -}}
{{ include "gatehouse.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ $root.Chart.Name }}-{{ $root.Chart.Version }}
{{- end -}}

{{- define "gatehouse.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{/* The Secret with the database's address. */}}
{{- define "gatehouse.secret" -}}
{{ .Values.database.existingSecret | default .Release.Name }}
{{- end -}}

{{/* What both the replicas' pods and the init job's have. */}}
{{- define "gatehouse.placement" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "gatehouse.environment" -}}
envFrom:
  - secretRef: {name: {{ include "gatehouse.secret" . }}}
env:
  # Required: without an address, each replica would create a store of its own in /data.
  - name: GATEHOUSE_DATABASE_URL
    valueFrom: {secretKeyRef: {name: {{ include "gatehouse.secret" . }}, key: GATEHOUSE_DATABASE_URL}}
{{- end -}}

{{- define "gatehouse.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "gatehouse.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}
