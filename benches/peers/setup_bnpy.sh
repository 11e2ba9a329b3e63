#!/bin/sh
# Makes an environment for bnpy 0.1.7 in FOLDER; mixture.py takes its interpreter as --bnpy FOLDER/bin/python.
#
#     PYTHON=python3.8 benches/peers/setup_bnpy.sh FOLDER
#
# bnpy 0.1.7 needs names that NumPy has since removed, hence Python 3.8 and NumPy 1.18. A C++ compiler is needed too.
# Its sparse responsibilities are C++ that wants the headers of Eigen 3 and Boost; EIGENPATH and BOOSTMATHPATH say where
# they are (Debian: libeigen3-dev and libboost-math-dev). Without them it is built dense only, and the bench leaves out
# L = 4.
set -eu

folder=${1:?"which folder? usage: PYTHON=python3.8 $0 FOLDER"}
python=${PYTHON:-python3.8}
eigen=${EIGENPATH:-/usr/include/eigen3}
boost=${BOOSTMATHPATH:-/usr/include}

"$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 8))' || {
    echo "setup_bnpy.sh: PYTHON=$python is not Python 3.8" >&2
    exit 1
}
"$python" -m venv "$folder"
pip="$folder/bin/python -m pip --disable-pip-version-check"
$pip install --quiet "setuptools<60" wheel "cython<3" "numpy==1.18.5" "scipy==1.4.1"
$pip install --quiet "scikit-learn<0.24" "pandas<1.2" "matplotlib<3.4" "joblib==0.14.1" "numexpr<2.8" \
    "munkres==1.0.12" memory_profiler psutil threadpoolctl

if [ -f "$eigen/Eigen/Dense" ] && [ -f "$boost/boost/math/special_functions/digamma.hpp" ]; then
    export EIGENPATH="$eigen" BOOSTMATHPATH="$boost"
else
    unset EIGENPATH BOOSTMATHPATH
    echo "setup_bnpy.sh: no headers of Eigen and Boost: bnpy is built without sparse responsibilities" >&2
fi
# What else it asks for (IPython, sphinx_gallery) it never imports here.
CFLAGS="-O3 -march=native -Wno-narrowing" $pip install \
    --quiet --no-build-isolation --no-deps --no-binary bnpy --no-cache-dir "bnpy==0.1.7"

# It looks for its libraries without the suffix that setuptools gives them.
site=$("$folder/bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
for library in "$site"/bnpy/util/lib/sparseResp/*.cpython-*.so; do
    [ -f "$library" ] && cp "$library" "${library%%.cpython-*}.so"
done
"$folder/bin/python" -c 'import bnpy' >/dev/null
echo "$folder/bin/python has bnpy 0.1.7"
