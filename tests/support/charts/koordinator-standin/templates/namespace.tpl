apiVersion: v1
kind: Namespace
metadata:
  name: {{ .Values.installation.namespace }}
  labels:
    controle-plane: koordinator
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: slo-controller-config
  namespace: {{ .Values.installation.namespace }}
data:
  colocation-config: |
    {"enable": true}
  resource-threshold-config: |
    {"clusterStrategy": {"enable": true}}
{{- range $name, $value := dict "prod" 9000 "mid" 7000 "batch" 5000 "free" 3000 }}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata:
  name: koord-{{ $name }}
value: {{ $value }}
{{- end }}
