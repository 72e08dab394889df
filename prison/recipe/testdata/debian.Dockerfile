FROM registry.example:5000/team/base:1
USER 0
SHELL ["/bin/sh", "-ec"]
RUN command -v apt-get >/dev/null || { echo "the base image has no apt-get: it must be a Debian or Ubuntu" >&2; exit 1; }
RUN export DEBIAN_FRONTEND=noninteractive; apt-get update; \
    apt-get install -y --no-install-recommends -o Dpkg::Options::=--force-unsafe-io \
    bash ca-certificates git make golang-go nodejs npm python3 python3-pip python3-venv python-is-python3 curl gzip tar unzip xz-utils; \
    apt-get clean; rm -rf /var/lib/apt/lists/* /var/log/apt /var/log/dpkg.log /var/cache/debconf/*-old
RUN curl -fsSL https://mise.run -o /tmp/install; \
    MISE_VERSION=v2026.9.15 MISE_INSTALL_PATH=/usr/local/bin/mise sh /tmp/install; rm /tmp/install
ARG MISE_DATA_DIR=/opt/mise
ARG MISE_GLOBAL_CONFIG_FILE=/opt/mise/config.toml
ARG MISE_CACHE_DIR=/tmp/mise
ARG MISE_YES=1
RUN mise use --global --pin uv@latest; rm -rf /tmp/mise
RUN for folder in $(mise bin-paths); do for program in "$folder"/*; do \
    if [ -x "$program" ]; then ln -sf "$program" /usr/local/bin/; fi; done; done
RUN npm install --global --no-audit --no-fund pnpm@9.1.0; rm -rf /root/.npm
RUN git --version; \
    go version; \
    node --version; \
    pnpm --version 2>&1 | grep -F 9.1.0; \
    python3 --version; \
    uv --version
RUN npm install --global --prefix /usr/local --no-audit --no-fund @anthropic-ai/claude-code@2.1.330 opencode-ai@1.18.33; rm -rf /root/.npm; \
    mkdir /tmp/home; HOME=/tmp/home claude --version 2>&1 | grep -F 2.1.330; HOME=/tmp/home opencode --version 2>&1 | grep -F 1.18.33; rm -rf /tmp/home
USER 65532:65532
WORKDIR /workspace
