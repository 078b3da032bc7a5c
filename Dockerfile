# The studio in a container:  docker build -t dynid . && docker run --rm -p 8765:8765 -v "$PWD:/data" dynid
FROM python:3.12-slim
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
COPY benchmarks benchmarks
COPY reproductions reproductions
RUN python -m pip install --no-cache-dir --no-compile -c constraints.txt ".[studio,logs]" \
    && useradd --create-home user \
    && mkdir /data && chown user /data
USER user
WORKDIR /data
RUN dynid warmup
EXPOSE 8765
ENTRYPOINT ["dynid"]
# The address is printed with its token: open it in a browser on the host.
CMD ["studio", "--host", "0.0.0.0", "--port", "8765", "--no-browser"]
