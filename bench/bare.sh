#!/usr/bin/env bash
# Measure the GPU page on a machine that has PyTorch and transformers, but no package index.
#
#   bash bench/bare.sh fetch [PYTHON_VERSION]      # on a machine with a package index: download wheels to .wheels/
#   bash bench/bare.sh run OUT_FOLDER [OPTION...]  # on the GPU machine: install the wheels in a temporary folder, measure
#
# The options are those of `python -m bench`. OUT_FOLDER/gpu.json is written again after each measurement.
set -euo pipefail
cd "$(dirname "$0")/.."
lacking=(conllu platformdirs text2num zstandard) # dependencies that images with PyTorch usually lack
python=${PYTHON:-python3} wheels=${WHEELS:-.wheels}

case "${1:-}" in
fetch)
  for glibc in 28 27 17; do platforms+=(--platform "manylinux_2_${glibc}_x86_64"); done
  for name in "${lacking[@]}"; do
    "$python" -m pip download --quiet --no-deps --only-binary=:all: --python-version "${2:-3.12}" \
      --implementation cp "${platforms[@]}" --platform manylinux2014_x86_64 \
      --dest "$wheels" --constraint constraints.txt "$name"
  done
  ls "$wheels"
  ;;
run)
  out=${2:?a folder for the results}
  mkdir -p "$out"
  if compgen -G "$wheels/*.whl" >/dev/null; then
    site=$(mktemp -d)
    trap 'rm -rf "$site"' EXIT
    "$python" -m pip install --quiet --no-index --no-deps --no-compile --target "$site" "$wheels"/*.whl
    export PYTHONPATH="$site${PYTHONPATH:+:$PYTHONPATH}"
  fi
  "$python" -m bench training --device cuda "${@:3}" --json "$out/gpu.json"
  ;;
*)
  sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
  exit 2
  ;;
esac
