FROM python:3.12-slim AS build
WORKDIR /build
COPY pyproject.toml requirements.lock README.md LICENSE ./
COPY domain domain
COPY projections projections
COPY consumers consumers
COPY infra infra
COPY src src
RUN python -m venv /opt/mnemolog && /opt/mnemolog/bin/pip install --no-cache-dir --constraint requirements.lock ".[kafka,postgres,qdrant]"

FROM python:3.12-slim
RUN useradd --system --uid 10001 --home-dir /data --shell /usr/sbin/nologin mnemolog \
    && install --directory --owner mnemolog --group mnemolog --mode 0700 /data
COPY --from=build /opt/mnemolog /opt/mnemolog
ENV PATH=/opt/mnemolog/bin:$PATH PYTHONUNBUFFERED=1
USER mnemolog
WORKDIR /data
VOLUME /data
ENTRYPOINT ["mnemolog"]
CMD ["--help"]
