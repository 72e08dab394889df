FROM debian:12
USER 0
SHELL ["/bin/sh", "-ec"]
RUN command -v apt-get >/dev/null || { echo "the base image has no apt-get: it must be a Debian or Ubuntu" >&2; exit 1; }
RUN export DEBIAN_FRONTEND=noninteractive; apt-get update; \
    icu=$(apt-cache pkgnames libicu | grep -E '^libicu[0-9]+$' | sort -V | tail -n 1); \
    apt-get install -y --no-install-recommends -o Dpkg::Options::=--force-unsafe-io \
    bash ca-certificates git gcc libc6-dev curl gzip tar unzip xz-utils "$icu"; \
    apt-get clean; rm -rf /var/lib/apt/lists/* /var/log/apt /var/log/dpkg.log /var/cache/debconf/*-old
RUN curl -fsSL https://mise.run -o /tmp/install; \
    MISE_VERSION=v2026.9.15 MISE_INSTALL_PATH=/usr/local/bin/mise sh /tmp/install; rm /tmp/install
ARG MISE_DATA_DIR=/opt/mise
ARG MISE_GLOBAL_CONFIG_FILE=/opt/mise/config.toml
ARG MISE_CACHE_DIR=/tmp/mise
ARG MISE_YES=1
ENV RUSTUP_HOME=/opt/mise/rustup RUSTUP_TOOLCHAIN=1.80.0
ARG MISE_RUSTUP_HOME=/opt/mise/rustup
ARG MISE_CARGO_HOME=/opt/mise/cargo
ARG CARGO_HOME=/opt/mise/cargo
RUN mise use --global --pin dotnet@8.0.404; rm -rf /tmp/mise
RUN mise use --global --pin go@1.22.1; rm -rf /tmp/mise
RUN mise use --global --pin java@temurin-21.0.2; rm -rf /tmp/mise
RUN mise use --global --pin gradle@8.10; rm -rf /tmp/mise
RUN mise use --global --pin node@20.18.0; rm -rf /tmp/mise
RUN mise use --global --pin python@3.12.7; rm -rf /tmp/mise
RUN mise use --global --pin rust@1.80.0; rm -rf /tmp/mise
RUN mise use --global --pin terraform@1.9.8; rm -rf /tmp/mise
RUN for folder in $(mise bin-paths); do for program in "$folder"/*; do \
    if [ -x "$program" ]; then ln -sf "$program" /usr/local/bin/; fi; done; done
RUN npm install --global --no-audit --no-fund yarn; rm -rf /root/.npm
RUN for folder in $(mise bin-paths); do for program in "$folder"/*; do \
    if [ -x "$program" ]; then ln -sf "$program" /usr/local/bin/; fi; done; done
RUN python3 -m pip install --no-cache-dir --root-user-action=ignore poetry==1.8.3
RUN for folder in $(mise bin-paths); do for program in "$folder"/*; do \
    if [ -x "$program" ]; then ln -sf "$program" /usr/local/bin/; fi; done; done
RUN git --version; \
    dotnet --version 2>&1 | grep -F 8.0.404; \
    go version 2>&1 | grep -F 1.22.1; \
    java -version 2>&1 | grep -F 21.0.2; \
    gradle --version 2>&1 | grep -F 8.10; \
    node --version 2>&1 | grep -F 20.18.0; \
    yarn --version; \
    python3 --version 2>&1 | grep -F 3.12.7; \
    poetry --version 2>&1 | grep -F 1.8.3; \
    rustc --version 2>&1 | grep -F 1.80.0; \
    terraform --version 2>&1 | grep -F 1.9.8
RUN node -e 'process.exit(+(parseInt(process.versions.node) < 20))' || { \
    echo 'qwen needs Node 20 or later: set version = "22.12.0" in [languages.node] of coding-environment.toml' >&2; exit 1; }
RUN npm install --global --prefix /usr/local --no-audit --no-fund @qwen-code/qwen-code@0.15.10; rm -rf /root/.npm; \
    mkdir /tmp/home; HOME=/tmp/home qwen --version 2>&1 | grep -F 0.15.10; rm -rf /tmp/home
USER 65532:65532
WORKDIR /workspace
