{{- range $name := list "manager" "scheduler" "descheduler" }}
{{- $own := index $.Values $name }}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: koord-{{ $name }}
  namespace: {{ $.Values.installation.namespace }}
  labels:
    koord-app: koord-{{ $name }}
spec:
  replicas: {{ $own.replicas }}
  selector:
    matchLabels:
      koord-app: koord-{{ $name }}
  template:
    metadata:
      labels:
        koord-app: koord-{{ $name }}
    spec:
      containers:
        - name: {{ $name }}
          image: "{{ $.Values.imageRepositoryHost }}/{{ $own.image.repository }}:{{ $own.image.tag }}"
          imagePullPolicy: Always
          resources:
            {{- toYaml $own.resources | nindent 12 }}
{{- end }}
---
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: koordlet
  namespace: {{ .Values.installation.namespace }}
  labels:
    koord-app: koordlet
spec:
  selector:
    matchLabels:
      koord-app: koordlet
  template:
    metadata:
      labels:
        koord-app: koordlet
    spec:
      containers:
        - name: koordlet
          args:
            - -feature-gates={{ .Values.koordlet.features }}
          image: "{{ .Values.imageRepositoryHost }}/{{ .Values.koordlet.image.repository }}:{{ .Values.koordlet.image.tag }}"
          imagePullPolicy: Always
