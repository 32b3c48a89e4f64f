{{- define "assent.labels" -}}
app.kubernetes.io/name: assent
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}
